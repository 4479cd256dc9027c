// PNG by libspng: every colour type and depth, interlaced or not, as Pillow's convert("RGB") has them: alpha and tRNS
// are dropped, gamma is not applied, 16-bit colour keeps its upper byte, 16-bit grey is cut off at 255 (Pillow's
// conversion of its mode I;16). Of an animated PNG the default image. Thread-safe.
//
// libspng sees a stream that holds only the chunks that pixels depend on: IHDR, PLTE and IDAT. Profiles, texts and
// animation chunks are never parsed.
//
// Verdicts, the same for every box, because all rows are decoded: checksums of the chunks before the image data must be
// right, those of the image data need not be (as in Pillow); data that does not inflate, or ends early, is an error.
#pragma once

#include "daemon/backend/cpu/decode.h"

namespace millrace {

// The box's pixels in `buffer`. Errors: kInvalid (damaged, truncated, other size), kDeadline, kExhausted.
Result<kernels::U8View> decode_png(const DecodeRequest& request, PixelBuffer& buffer);

// The size that decode_png() finds. Errors as there.
Result<kernels::Size> png_size(ByteView bytes_untrusted);

}  // namespace millrace
