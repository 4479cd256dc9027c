// StoredPictures to PNG files, by libspng: 8 and 16 bits, grey, grey with alpha, RGB, RGB with alpha, palettes, and
// metadata as eXIf, iCCP and XMP. Thread-safe: a plain function.
#pragma once

#include <cstdint>
#include <vector>

#include "client/cli/convert/pictures/stored_picture.h"
#include "client/cli/convert/why_copied.h"
#include "proto/base/result.h"

namespace millrace::cli {

// An orientation that neither EXIF nor XMP tells becomes EXIF of its own, in `picture` as well. kNothing: `out` is the
// file. kMetadata: PNG cannot hold it, or EXIF says another orientation. kInternal: libspng has an error of its own.
Result<WhyCopied> write_png_picture(StoredPicture& picture, std::vector<std::uint8_t>& out);

}  // namespace millrace::cli
