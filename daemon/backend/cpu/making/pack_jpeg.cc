#include "daemon/backend/cpu/making/pack_jpeg.h"

#include "daemon/backend/cpu/decoders/jpeg_coefficients.h"
#include "daemon/backend/words.h"

namespace millrace {

Result<std::vector<std::uint8_t>> pack_jpeg(ByteView file_untrusted, const SourceInfo& info,
                                            kernels::jpeg::IndexBytes index_untrusted, std::uint64_t owner,
                                            kernels::jpeg::Decoder& decoder, kernels::packed::Encoder& encoder,
                                            Clock::time_point deadline) {
  if (info.format != ImageFormat::kJpeg) return Error{Code::kUnsupported, "only JPEG files are kept packed"};
  const kernels::Size stored = in_kernels(info.stored);
  std::vector<std::uint8_t> packed;
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(file_untrusted.data());
  const auto header = kernels::jpeg::read_header({bytes, file_untrusted.size()});
  if (header && header->size == stored) {
    const auto outcome = decoder.pack(*header, index_untrusted, owner, encoder, packed, deadline);
    if (outcome == kernels::jpeg::Outcome::kDecoded) return packed;
    if (outcome == kernels::jpeg::Outcome::kLate) return deadline_error();
  }
  const DecodeRequest request{.bytes_untrusted = file_untrusted,
                              .stored = stored,
                              .box = kernels::whole(stored),
                              .deadline = deadline,
                              .codec = info.codec.at_most};
  MILLRACE_TRY_VOID(pack_coefficients(request, encoder));
  if (!encoder.finish(packed)) return memory_error();
  return packed;
}

}  // namespace millrace
