// Our JPEG decoder against libjpeg-turbo: whatever the bytes are, what it decodes has the same pixels, and what
// libjpeg-turbo calls an error it does not decode. Each instruction set, one stream and two. The first byte chooses the
// box.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "daemon/backend/cpu/jpeg_choice.h"
#include "daemon/backend/cpu/jpeg_decoder.h"

namespace {

using namespace millrace;
using kernels::jpeg::Decoder;
using kernels::jpeg::Streams;

constexpr int kMostPixels = 1 << 18;

std::vector<std::unique_ptr<Decoder>>& decoders() {
  static std::vector<std::unique_ptr<Decoder>> all = [] {
    std::vector<std::unique_ptr<Decoder>> made;
    for (const kernels::Target target : kernels::available_targets()) {
      for (const Streams streams : {Streams::kOne, Streams::kTwo})
        made.push_back(std::make_unique<Decoder>(target, streams));
    }
    return made;
  }();
  return all;
}

kernels::Box box_of(std::uint8_t choice, kernels::Size size) {
  const int left = (choice & 3) * (size.width - 1) / 4, top = (choice >> 2 & 3) * (size.height - 1) / 4;
  return {left, top, std::max(1, (size.width - left) * (1 + (choice >> 4 & 3)) / 4),
          std::max(1, (size.height - top) * (1 + (choice >> 6)) / 4)};
}

bool same_pixels(const kernels::U8View& a, const kernels::U8View& b) {
  if (a.channels != b.channels) return false;
  for (int y = 0; y < a.height; ++y) {
    if (std::memcmp(a.row(y), b.row(y), static_cast<std::size_t>(a.width) * a.channels) != 0) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ByteView bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  const auto header = kernels::jpeg::read_header({data + 1, size - 1});
  if (!header || std::int64_t{header->size.width} * header->size.height > kMostPixels) return 0;
  const DecodeRequest request{bytes, header->size, box_of(data[0], header->size),
                              Clock::now() + std::chrono::seconds(20)};
  PixelBuffer expected_buffer, buffer;
  const Result<kernels::U8View> expected = decode_jpeg(request, expected_buffer);
  if (!expected && expected.error().code == Code::kDeadline) return 0;
  for (const auto& decoder : decoders()) {
    const auto decoded = decode_jpeg_fast(request, buffer, *decoder);
    if (!decoded || (!*decoded && decoded->error().code == Code::kDeadline)) continue;
    if (!expected || !*decoded || !same_pixels(*expected, **decoded)) std::abort();
  }
  return 0;
}
