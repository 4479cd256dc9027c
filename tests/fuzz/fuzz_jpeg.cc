// Our JPEG decoder against libjpeg-turbo: whatever the bytes are, what it decodes has the same pixels, and what
// libjpeg-turbo calls an error it does not decode. Each instruction set, one stream and two. The first byte chooses the
// box.
#include <cstdlib>
#include <memory>
#include <vector>

#include "daemon/backend/cpu/jpeg_choice.h"
#include "daemon/backend/cpu/jpeg_decoder.h"
#include "tests/fuzz/fuzz_pixels.h"

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
