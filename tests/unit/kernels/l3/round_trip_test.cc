// Files of version 2: what was written is what is read, for every channel count, depth, size that tiles do not divide, and
// kind of picture.
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "kernels/l3/decoder.h"
#include "kernels/l3/encoding/encoder.h"

namespace millrace::kernels::l3 {
namespace {

enum class Content { kNoise, kSmooth, kFlat, kExtreme, kFew };

struct Samples {
  Size size;
  int channels, bytes;
  std::vector<std::uint8_t> data;

  std::ptrdiff_t stride() const { return std::ptrdiff_t{size.width} * channels * bytes; }
  SampleView view() const { return {data.data(), size, channels, bytes, stride()}; }
};

Samples drawn(Size size, int channels, int bytes, Content content) {
  Samples samples{size, channels, bytes, {}};
  std::mt19937 random(7);
  const std::uint32_t most = bytes == 1 ? 255 : 65535;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      for (int c = 0; c < channels; ++c) {
        std::uint32_t value = 17;
        if (content == Content::kNoise) value = static_cast<std::uint32_t>(random());
        if (content == Content::kSmooth) value = static_cast<std::uint32_t>(x * 3 + y * 5 + c * 9) + random() % 4;
        if (content == Content::kExtreme) value = random() % 2 == 0 ? 0 : most;
        if (content == Content::kFew) value = static_cast<std::uint32_t>((x / 3 + y / 5) % 7 * 31);
        value &= most;
        for (int i = 0; i < bytes; ++i) samples.data.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
      }
    }
  }
  return samples;
}

std::vector<std::uint8_t> padded(std::vector<std::uint8_t> file) {
  file.resize(file.size() + kPadding);
  return file;
}

}  // namespace

TEST_CASE("a picture comes back sample by sample from its L3 file", "[l3]") {
  const Content content = GENERATE(Content::kNoise, Content::kSmooth, Content::kFlat, Content::kExtreme, Content::kFew);
  const int channels = GENERATE(1, 2, 3, 4), bytes = GENERATE(1, 2);
  const Size size = GENERATE(Size{32, 32}, Size{1, 1}, Size{33, 31}, Size{70, 5});
  const Effort effort = GENERATE(Effort::kFast, Effort::kBest);
  const Samples samples = drawn(size, channels, bytes, content);

  std::vector<std::uint8_t> file;
  REQUIRE(encode({samples.view()}, effort, Target::kScalar, file).empty());
  const std::size_t file_bytes = file.size();
  file = padded(std::move(file));
  Image image;
  REQUIRE(image.read(FileBytes(file).first(file_bytes), Check::kChecksums).empty());
  Samples back{size, channels, bytes, std::vector<std::uint8_t>(samples.data.size())};
  Decoder decoder(Target::kScalar);
  const Outcome outcome =
      decoder.decode(image, whole(size), Form::kStored, {}, {back.data.data(), size, channels, bytes, back.stride()});

  REQUIRE(outcome.is_fine());
  REQUIRE(back.data == samples.data);
  REQUIRE(image.head().size == size);
}

}  // namespace millrace::kernels::l3
