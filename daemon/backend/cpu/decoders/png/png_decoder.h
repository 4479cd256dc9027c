// PNG: every colour type and depth, interlaced or not, as Pillow's convert("RGB") has them: alpha and tRNS are dropped,
// gamma is not applied, 16-bit colour keeps its upper byte, 16-bit grey is cut off at 255 (Pillow's conversion of its
// mode I;16). Of an animated PNG the default image. Thread-safe.
//
// Ordinary files are decoded by us (png_quick_decoder.h); those that are interlaced, damaged or odd by libspng, from the
// start. Verdicts are Pillow's, but for those that README.md lists, and the same for every box, because all rows are
// inflated and all chunks are looked at (png_chunks.h, png_rows.h). Profiles and texts are never decompressed.
//
// Memory: the box's rows and one more, 3 bytes a pixel of the picture's width (grey: 1; 16-bit grey: 2), in `buffer`;
// 300 KiB, and three rows of the file, 8 bytes a pixel of the width each at most. Nothing for chunks.
#pragma once

#include "daemon/backend/cpu/decoders/decode.h"

namespace millrace {

// The box's pixels in `buffer`. Errors: kInvalid (damaged, truncated, other size), kDeadline, kExhausted.
Result<kernels::U8View> decode_png(const DecodeRequest& request, PixelBuffer& buffer);

// The same by libspng alone, whatever the file.
Result<kernels::U8View> decode_png_by_libspng(const DecodeRequest& request, PixelBuffer& buffer);

}  // namespace millrace
