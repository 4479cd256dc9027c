// The packed form of a JPEG file (kernels/packed), from which make_image() makes what it makes of the file.
// Thread-bound(the lane that owns decoder and encoder).
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/backend/cpu/decoders/library_decoder.h"
#include "daemon/model/bytes/encoded_image.h"
#include "kernels/cpu/jpeg/decoder.h"
#include "kernels/packed/encoder.h"

namespace millrace {

// Baseline files by our decoder, with the seek index there may be (empty: none; `owner` as for kernels::jpeg::Seeking);
// files in several scans, so progressive ones, by libjpeg-turbo, which `libraries` runs for `user`. Only files that decode whole without a warning. Costs
// little more than decoding all of the file's coefficients.
// Errors: kUnsupported: no file of which we make a packed form, nothing wrong with it; kInvalid, kDeadline, kExhausted as
// of decoding it.
Result<std::vector<std::uint8_t>> pack_jpeg(ByteView file_untrusted, const SourceInfo& info,
                                            kernels::jpeg::IndexBytes index_untrusted, std::uint64_t owner,
                                            kernels::jpeg::Decoder& decoder, kernels::packed::Encoder& encoder,
                                            const kernels::Deadline& deadline, LibraryDecoder& libraries,
                                            std::uint32_t user);

}  // namespace millrace
