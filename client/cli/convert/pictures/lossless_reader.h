// Files of formats that keep pictures without loss to StoredPictures: PNG, PNM, BMP, TIFF and WebP, a source each. 1, 2
// and 4 bits of grey become 8 as Pillow shows them. Everything else is as the file has it, or is named as a reason to copy
// the file.
//
// The bytes are hostile. Thread-safe: plain functions.
#pragma once

#include <string>

#include "client/cli/convert/pictures/stored_picture.h"
#include "client/cli/convert/why_copied.h"
#include "proto/base/result.h"

namespace millrace::cli {

// kNothing: `picture` is the file's. Otherwise why such a file is copied. Error: a sentence that goes on from the file's
// path ("is damaged: cut off").
Result<WhyCopied> read_lossless(PictureBytes file_untrusted, StoredPicture& picture);

// The same of one format. REQUIRES: the file begins as files of it do.
Result<WhyCopied> read_png(PictureBytes file_untrusted, StoredPicture& picture);
Result<WhyCopied> read_pnm(PictureBytes file_untrusted, StoredPicture& picture);
Result<WhyCopied> read_bmp(PictureBytes file_untrusted, StoredPicture& picture);
Result<WhyCopied> read_tiff(PictureBytes file_untrusted, StoredPicture& picture);
Result<WhyCopied> read_webp(PictureBytes file_untrusted, StoredPicture& picture);

Error damaged_picture(const std::string& what);  // "is damaged: cut off"

}  // namespace millrace::cli
