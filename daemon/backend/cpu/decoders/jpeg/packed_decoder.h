// MRP files (kernels/mrp): packed coefficients as files. Decoded by our own decoder as packed forms of JPEG files are;
// bit-equal to the JPEG file that was packed. Every byte of a file is under a checksum, which is compared each time: a
// damaged file is an error, whatever of it is wanted. Thread-safe.
#pragma once

#include "daemon/backend/cpu/decoders/decode.h"
#include "kernels/packed/packed_image.h"

namespace millrace {

// The packed image in a file, which borrows its bytes. kInvalid: damaged, or not of the size `stored`.
// Decoding REQUIRES kernels::packed::kPadding readable bytes behind the file's (EncodedBytes has them).
Result<void> open_packed_file(ByteView file_untrusted, kernels::Size stored, kernels::packed::PackedImage& image);

// The error of a file that its checksums say nothing against, and that no encoder made.
Error made_up_error();

// The box's pixels in `buffer`, for a caller that has no decoder of its own for it, and none of the rest of a lane.
// Errors: kInvalid, kDeadline, kExhausted. Copies the file.
Result<kernels::U8View> decode_packed(const DecodeRequest& request, PixelBuffer& buffer);

}  // namespace millrace
