#include "daemon/backend/cpu/isolation/decoder_deaths.h"

#include <csignal>
#include <string>

#include "daemon/backend/cpu/decoders/decode.h"

namespace millrace {

std::string_view library_of(ImageFormat format) {
  switch (format) {
    case ImageFormat::kJpeg:
      return "libjpeg-turbo";
    case ImageFormat::kPng:
      return "libspng";
    case ImageFormat::kWebp:
      return "libwebp";
    case ImageFormat::kTiff:
      return "libtiff";
    case ImageFormat::kAvif:
      return "libavif";
    case ImageFormat::kHeic:
      return "libde265";
    case ImageFormat::kBmp:
    case ImageFormat::kGif:
      return "kernels/raster";
    case ImageFormat::kPacked:
    case ImageFormat::kPnm:
    case ImageFormat::kL3:
      break;
  }
  return "none";
}

Error death_error(const DecoderAnswer& answer) {
  if (answer.end == DecoderAnswer::End::kLate || answer.signal == SIGXCPU) return deadline_error();
  const std::string signal = " (signal " + std::to_string(answer.signal) + ")";
  if (answer.signal == 0)
    return {Code::kInvalid, "the decoder gave up on this file (status " + std::to_string(answer.status) + ")"};
  if (answer.signal == SIGKILL)
    return {Code::kExhausted, "the decoder was killed at this file, most likely for want of memory" + signal};
  if (answer.signal == SIGSYS)
    return {Code::kInvalid, "the decoder tried at this file what its sandbox forbids, and was killed" + signal};
  return {Code::kInvalid, "the decoder crashed on this file" + signal};
}

void DecoderDeaths::started() {
  if (counters_ != nullptr) counters_->add(MetricId::decoder_starts);
}

void DecoderDeaths::died(const DecoderAnswer& answer, ImageFormat format, std::uint32_t user) {
  const std::string_view library = library_of(format);
  if (counters_ != nullptr) counters_->add(MetricId::decoder_deaths, library);
  lines_.warn(user, "the decoder process of user " + std::to_string(user) + " at work with " + std::string(library) +
                        " was lost: " + death_error(answer).message);
}

}  // namespace millrace
