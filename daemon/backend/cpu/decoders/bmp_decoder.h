// BMP by kernels/raster, with Pillow's pixels: alpha is dropped. The file must have the whole picture, whatever the box;
// what follows it does not count. Thread-safe.
//
// Memory: the box, a byte or three a pixel, in `buffer`.
#pragma once

#include "daemon/backend/cpu/decoders/decode.h"

namespace millrace {

// The box's pixels in `buffer`. Errors: kInvalid (broken, truncated, other size), kDeadline, kExhausted.
Result<kernels::U8View> decode_bmp(const DecodeRequest& request, PixelBuffer& buffer);

}  // namespace millrace
