// The coefficients of a JPEG file in several scans, progressive ones above all, by libjpeg-turbo: for packing them.
// Thread-safe; the encoder belongs to one lane.
#pragma once

#include "daemon/backend/cpu/decoders/decode.h"
#include "kernels/packed/encoder.h"

namespace millrace {

// All blocks to `encoder`, which then has them all. Taken are files from which decode_jpeg() (jpeg_decoder.h) makes the
// pixels that an inverse DCT of these coefficients, smooth upsampling and YCbCr -> RGB give, without a warning.
// Errors: kUnsupported: no such file, or the encoder refuses it; kInvalid (damaged, truncated, other size), kDeadline,
// kExhausted. Memory: what libjpeg-turbo takes for decoding the file, no more than request.codec. request.box, .index
// and .reduction count for nothing.
Result<void> pack_coefficients(const DecodeRequest& request, kernels::packed::Encoder& encoder);

}  // namespace millrace
