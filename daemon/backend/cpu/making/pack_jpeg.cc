#include "daemon/backend/cpu/making/pack_jpeg.h"

#include "daemon/backend/words.h"

namespace millrace {

Result<std::vector<std::uint8_t>> pack_jpeg(ByteView file_untrusted, const SourceInfo& info,
                                            kernels::jpeg::IndexBytes index_untrusted, std::uint64_t owner,
                                            kernels::jpeg::Decoder& decoder, kernels::packed::Encoder& encoder,
                                            const kernels::Deadline& deadline, LibraryDecoder& libraries,
                                            std::uint32_t user) {
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
                              .codec = info.codec.at_most,
                              .origin = {user, Origin::Audience::kEverybody}};
  return libraries.pack(request, encoder);
}

}  // namespace millrace
