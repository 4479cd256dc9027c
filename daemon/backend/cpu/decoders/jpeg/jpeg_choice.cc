#include "daemon/backend/cpu/decoders/jpeg/jpeg_choice.h"

#include "daemon/backend/cpu/decoders/jpeg/jpeg_decoder.h"
#include "daemon/backend/cpu/decoders/jpeg/jpeg_source.h"

namespace millrace {

std::optional<Result<kernels::U8View>> decode_jpeg_fast(const DecodeRequest& request, PixelBuffer& buffer,
                                                        kernels::jpeg::Decoder& decoder) {
  const JpegSource source(request);
  if (!source.header()) return std::nullopt;
  const int channels = source.header()->components;
  const kernels::Box& box = request.box;
  const std::ptrdiff_t stride = std::ptrdiff_t{box.width} * channels;
  std::uint8_t* const memory = buffer.reserve(static_cast<std::size_t>(stride) * static_cast<std::size_t>(box.height));
  if (memory == nullptr) return Result<kernels::U8View>(memory_error());
  const kernels::MutableU8View pixels{memory, box.width, box.height, channels, stride};
  const kernels::jpeg::Outcome outcome = source.decode([&](const auto& from, auto... seeking) {
    return decoder.decode(from, box, pixels, request.deadline, seeking...);
  });
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
