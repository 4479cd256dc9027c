// TIFF by libtiff: the first picture, in strips or tiles, uncompressed or by LZW, Deflate, PackBits, JPEG or the fax codes,
// of the kinds that Pillow reads and a tensor can show; as its convert("RGB") has them (tiff_pixels.h). Others are
// refused by name. Thread-safe.
//
// Verdicts are the same for every box, because all strips or tiles are decoded. What libtiff has to say it says in the
// error, and nowhere else.
//
// Memory: the box, a byte or three a pixel, in `buffer`; a row, a tile or a strip of PackBits, the directory, and where
// the parts are, as formats/tiff.h has it. Nothing that is taken at once is larger than that.
#pragma once

#include "daemon/backend/cpu/decoders/decode.h"

namespace millrace {

// The box's pixels in `buffer`. Errors: kInvalid (damaged, truncated, other size), kUnsupported, kDeadline, kExhausted.
Result<kernels::U8View> decode_tiff(const DecodeRequest& request, PixelBuffer& buffer);

// Decodes a picture of one pixel. For a process that will soon be shut in (isolation/sandbox.h): sorting its table of
// tags, libtiff has glibc ask the kernel how much memory there is, once.
void prepare_tiff();

}  // namespace millrace
