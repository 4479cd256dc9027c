// WebP by libwebp: lossy and lossless, alpha dropped, as Pillow's convert("RGB") has them; of an animation the first
// frame on black. Thread-safe.
//
// Verdicts, the same for every box: the file's chunks must be complete (as for Pillow, whose demultiplexer insists),
// damage inside the first frame is an error when libwebp sees it. libwebp cannot be interrupted, so the deadline is
// seen only before and after; the limits on pixels bound it.
#pragma once

#include "daemon/backend/cpu/decode.h"

namespace millrace {

// The box's pixels in `buffer`. Errors: kInvalid (damaged, truncated, other size), kUnsupported, kDeadline, kExhausted.
Result<kernels::U8View> decode_webp(const DecodeRequest& request, PixelBuffer& buffer);

// The size that decode_webp() finds. Errors as there.
Result<kernels::Size> webp_size(ByteView bytes_untrusted);

}  // namespace millrace
