// JPEG by libjpeg-turbo: accurate integer inverse DCT, smooth chroma upsampling, CMYK and YCCK converted as Pillow does
// (ink inverted, as Adobe writes it). Bit-equal to Pillow. Thread-safe.
//
// Only the rows and columns of the box, and those that they depend on, pass through the inverse DCT where
// libjpeg-turbo's skipping is bit-exact: sequential Huffman files in one scan with the usual samplings. All others are
// decoded from the top, row by row.
//
// Verdicts (README.md, "When a damaged JPEG is an error"): of a whole picture Pillow's, which reads the file by 64 KiB
// and goes on to the end marker; damage that libjpeg decodes with a warning gives the pixels that libjpeg gives. Of a
// part the same, but that such a warning up to its last row is an error; and that behind this row only markers are
// looked at where the scan has none but restarts in turns and EOI.
#pragma once

#include "daemon/backend/cpu/decoders/decode.h"

namespace millrace {

// The box's pixels in `buffer`. Errors: kInvalid (damaged, truncated, other size), kUnsupported (12 bits, lossless, two
// components), kDeadline, kExhausted. Memory beside the buffer: rows only, or for files of several scans up to 8 bytes
// a pixel; never more than request.codec.
Result<kernels::U8View> decode_jpeg(const DecodeRequest& request, PixelBuffer& buffer);

}  // namespace millrace
