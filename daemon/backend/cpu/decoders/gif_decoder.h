// GIF by kernels/raster: the first picture, as Pillow's convert("RGB") has it, on its canvas; transparent pixels show the
// colour that is stored under them. All of the first picture is read, whatever the box; what follows it does not count.
// Thread-safe.
//
// Memory: the box, a byte or three a pixel, in `buffer`; 17 KiB of stack.
#pragma once

#include "daemon/backend/cpu/decoders/decode.h"

namespace millrace {

// The box's pixels in `buffer`. Errors: kInvalid (broken, truncated, other size), kDeadline, kExhausted.
Result<kernels::U8View> decode_gif(const DecodeRequest& request, PixelBuffer& buffer);

}  // namespace millrace
