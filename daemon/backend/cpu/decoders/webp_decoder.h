// WebP by libwebp: lossy and lossless, alpha dropped, as Pillow's convert("RGB") has them; of an animation the first
// frame on black. Thread-safe.
//
// Verdicts are Pillow's and the same for every box: the file's chunks must be complete (webp_frame.h), and the whole
// first frame must be without damage that libwebp sees. libwebp cannot be interrupted, so the deadline is seen only
// before and after; the limits on pixels bound it.
//
// For indices the whole picture is decoded, and its verdict is on the colours of all of it.
//
// Memory: 3 bytes a pixel of the box's columns, and 8 to either side, from 8 rows above the box down to the last row,
// in `buffer` (for indices, and of a frame smaller than its canvas: 3 bytes a pixel of the whole canvas). In libwebp,
// for a lossy frame 136 bytes a column; for a lossless one 5 bytes a pixel and 80 a column; for alpha beside a lossy one
// 6 bytes a pixel and 80 a column more; and 1 MiB for the rest. Lossless frames and alpha may have a group of Huffman
// codes for each 4x4 pixels (or 1,000 of them, for smaller ones), 21 KiB each: as libwebp's encoder writes them 55 MB at
// most, in a hostile file 8.4 KiB a byte of the file and 1.4 GB in all. Nothing for chunks.
#pragma once

#include "daemon/backend/cpu/decoders/decode.h"

namespace millrace {

// The box's pixels in `buffer`. Errors: kInvalid (damaged, truncated, other size), kUnsupported, kDeadline, kExhausted.
Result<kernels::U8View> decode_webp(const DecodeRequest& request, PixelBuffer& buffer);

}  // namespace millrace
