// What the decoders have in common whose work is in kernels/raster.
#pragma once

#include "daemon/backend/cpu/decoders/decode.h"
#include "kernels/raster/decoded.h"
#include "kernels/raster/raster_file.h"

namespace millrace {

inline kernels::raster::FileBytes file_of(const DecodeRequest& request) {
  return {reinterpret_cast<const std::uint8_t*>(request.bytes_untrusted.data()), request.bytes_untrusted.size()};
}

inline Result<void> check_size(kernels::Size found, const DecodeRequest& request) {
  if (found != request.stored) return size_error(request.stored, found);
  return {};
}

// Where the box's rows go, one behind the other.
inline Result<kernels::MutableU8View> box_in(PixelBuffer& buffer, const DecodeRequest& request, int channels) {
  const kernels::Box& box = request.box;
  const std::ptrdiff_t stride = std::ptrdiff_t{box.width} * channels;
  std::uint8_t* const memory = buffer.reserve(static_cast<std::size_t>(stride) * static_cast<std::size_t>(box.height));
  if (memory == nullptr) return memory_error();
  return kernels::MutableU8View{memory, box.width, box.height, channels, stride};
}

inline kernels::raster::GoOn in_time(const DecodeRequest& request) {
  return [deadline = request.deadline] { return !deadline.is_over(); };
}

inline Error cut_off_error(const char* format) {
  return {Code::kInvalid, std::string("truncated ") + format + ": the image data ends before the image does"};
}

inline Result<void> verdict_of(kernels::raster::Decoded end, const char* format) {
  using kernels::raster::Decoded;
  switch (end) {
    case Decoded::kAll:
      return {};
    case Decoded::kCutOff:
      return cut_off_error(format);
    case Decoded::kBroken:
      return Error{Code::kInvalid, std::string("damaged ") + format + ": the image data makes no sense"};
    case Decoded::kStopped:
      break;
  }
  return deadline_error();
}

}  // namespace millrace
