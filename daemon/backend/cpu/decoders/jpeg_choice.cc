#include "daemon/backend/cpu/decoders/jpeg_choice.h"

#include "daemon/backend/cpu/decoders/jpeg_decoder.h"

namespace millrace {

std::optional<Result<kernels::U8View>> decode_jpeg_fast(const DecodeRequest& request, PixelBuffer& buffer,
                                                        kernels::jpeg::Decoder& decoder) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(request.bytes_untrusted.data());
  const auto header = kernels::jpeg::read_header({bytes, request.bytes_untrusted.size()});
  if (!header || header->size != request.stored) return std::nullopt;
  const kernels::Box& box = request.box;
  const std::ptrdiff_t stride = std::ptrdiff_t{box.width} * header->components;
  std::uint8_t* const memory = buffer.reserve(static_cast<std::size_t>(stride) * static_cast<std::size_t>(box.height));
  if (memory == nullptr) return Result<kernels::U8View>(memory_error());
  const kernels::MutableU8View pixels{memory, box.width, box.height, header->components, stride};
  const kernels::jpeg::Outcome outcome = with_index(
      request.index, [&](auto* seeking) { return decoder.decode(*header, box, pixels, request.deadline, seeking); });
  switch (outcome) {
    case kernels::jpeg::Outcome::kDecoded:
      return Result<kernels::U8View>(kernels::U8View(pixels));
    case kernels::jpeg::Outcome::kLate:
      return Result<kernels::U8View>(deadline_error());
    case kernels::jpeg::Outcome::kNotHere:
      break;
  }
  return std::nullopt;
}

Result<kernels::U8View> decode_jpeg(const DecodeRequest& request, PixelBuffer& buffer,
                                    kernels::jpeg::Decoder& decoder) {
  if (const auto decoded = decode_jpeg_fast(request, buffer, decoder)) return *decoded;
  return decode_jpeg(request, buffer);
}

}  // namespace millrace
