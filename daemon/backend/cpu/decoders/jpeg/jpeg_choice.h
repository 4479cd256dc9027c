// JPEG by our own decoder where it applies, by libjpeg-turbo where it does not: other kinds of file, and whatever is
// odd or damaged. Pixels, warnings and verdicts are libjpeg-turbo's on either path.
#pragma once

#include "daemon/backend/cpu/decoders/decode.h"
#include "kernels/cpu/jpeg/decoder.h"

namespace millrace {

// As the other decode_jpeg() (jpeg_decoder.h), in little more than half the time for most files. Thread-bound(the owner
// of `decoder` and `buffer`).
Result<kernels::U8View> decode_jpeg(const DecodeRequest& request, PixelBuffer& buffer, kernels::jpeg::Decoder& decoder);

// The fast path alone. nullopt: not for it.
std::optional<Result<kernels::U8View>> decode_jpeg_fast(const DecodeRequest& request, PixelBuffer& buffer,
                                                        kernels::jpeg::Decoder& decoder);

}  // namespace millrace
