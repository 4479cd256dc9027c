// What an encoder refuses, and that it does not matter how blocks come to it.
#include <algorithm>
#include <catch2/catch.hpp>

#include "kernels/cpu/jpeg/dct/inverse_dct.h"
#include "tests/unit/kernels/packed/packed_rig.h"

namespace millrace::kernels::packed {
namespace {

using jpeg::kCoefficients;

Picture make_random(Size size, int components, int h, int v) {
  std::mt19937 random(20);
  Picture picture = make_picture(make_header(size, components, h, v, 2));
  fill(picture, {}, random);
  return picture;
}

TEST_CASE("a packed image does not depend on the pieces in which blocks came", "[packed]") {
  const Picture picture = make_random({500, 90}, 3, 2, 2);
  const auto blocks = static_cast<std::int64_t>(picture.blocks.size() / kCoefficients);
  for (const Target target : every_target()) {
    Encoder encoder(target);
    const Bytes whole = pack(encoder, picture);
    REQUIRE_FALSE(whole.empty());
    std::mt19937 random(21);
    for (const int most : {1, 7, 100, 250, 1000}) {
      Bytes bytes;
      REQUIRE(encoder.begin(picture.header));
      for (std::int64_t at = 0; at < blocks;) {
        const std::int64_t count = std::min<std::int64_t>(blocks - at, 1 + random() % static_cast<unsigned>(most));
        REQUIRE(encoder.take(picture.blocks.data() + at * kCoefficients, count));
        at += count;
      }
      REQUIRE(encoder.finish(bytes));
      CAPTURE(name_of(target), most);
      REQUIRE((bytes == whole));
    }
  }
}

TEST_CASE("blocks that are missing, or too many, make no packed image, and the next one is whole", "[packed]") {
  const Picture picture = make_random({100, 60}, 3, 1, 1);
  const auto blocks = static_cast<std::int64_t>(picture.blocks.size() / kCoefficients);
  Encoder encoder;
  const Bytes whole = pack(encoder, picture);
  Bytes bytes;

  REQUIRE(encoder.begin(picture.header));
  REQUIRE(encoder.take(picture.blocks.data(), blocks - 1));
  CHECK_FALSE(encoder.finish(bytes));
  CHECK_FALSE(encoder.take(picture.blocks.data(), 1));

  REQUIRE(encoder.begin(picture.header));
  REQUIRE(encoder.take(picture.blocks.data(), blocks));
  CHECK_FALSE(encoder.take(picture.blocks.data(), 1));
  CHECK_FALSE(encoder.finish(bytes));

  REQUIRE(encoder.begin(picture.header));
  REQUIRE(encoder.take(picture.blocks.data(), blocks));
  encoder.trim(0);
  CHECK_FALSE(encoder.finish(bytes));
  CHECK(bytes.empty());
  CHECK((pack(encoder, picture) == whole));
  REQUIRE(encoder.begin(picture.header));
  CHECK_FALSE(encoder.finish(bytes));
}

TEST_CASE("images of other kinds are refused", "[packed]") {
  Encoder encoder;
  const auto is_taken = [&](auto change) {
    jpeg::Header header = make_header({100, 60}, 3, 2, 2, 4);
    change(header);
    return encoder.begin(header);
  };

  CHECK(is_taken([](jpeg::Header&) {}));
  CHECK_FALSE(is_taken([](jpeg::Header& header) { header.components = 2; }));
  CHECK_FALSE(is_taken([](jpeg::Header& header) { header.components = 4; }));
  CHECK_FALSE(is_taken([](jpeg::Header& header) { header.component[0].h = 4; }));
  CHECK_FALSE(is_taken([](jpeg::Header& header) { header.component[0].v = 0; }));
  CHECK_FALSE(is_taken([](jpeg::Header& header) { header.component[2].h = 2; }));
  CHECK_FALSE(is_taken([](jpeg::Header& header) { header.size.width = 4; }));
  CHECK_FALSE(is_taken([](jpeg::Header& header) { header.size.height = 0; }));
  CHECK_FALSE(is_taken([](jpeg::Header& header) { header.size.width = 65501; }));
  CHECK_FALSE(is_taken([](jpeg::Header& header) { header.quant[1].reset(); }));
  CHECK_FALSE(is_taken([](jpeg::Header& header) { header.component[1].quant = 4; }));
  CHECK_FALSE(is_taken([](jpeg::Header& header) { header.quant[1]->at(63) = 0; }));
}

// Every second block is about as large as blocks may be.
void make_large(std::int16_t* block, std::mt19937& random) {
  std::fill_n(block, kCoefficients, std::int16_t{0});
  for (int i = 0; i < 4; ++i) {
    const int magnitude = static_cast<int>(random() % 1000) + (random() % 16 == 0 ? 30000 : 0);
    block[random() % kCoefficients] = static_cast<std::int16_t>(random() % 2 == 0 ? magnitude : -magnitude);
  }
  if (random() % 50 == 0) block[random() % kCoefficients] = INT16_MIN;
}

TEST_CASE("what inverse DCTs do not do alike is refused, and nothing else", "[packed]") {
  std::mt19937 random(22);
  Picture picture = make_picture(make_header({8 * 9, 8}, 1, 1, 1, 3));
  picture.header.quant[2]->at(1) = 65535;
  const jpeg::Dequantiser dequantiser = jpeg::make_dequantiser(*picture.header.quant[2]);
  std::vector<std::unique_ptr<Encoder>> encoders;
  for (const Target target : every_target()) encoders.push_back(std::make_unique<Encoder>(target));
  int taken = 0;
  for (int round = 0; round < 4000; ++round) {
    std::int16_t* const block = picture.block(random() % 9);
    make_large(block, random);
    const bool expected = jpeg::is_ordinary({block, &dequantiser, nullptr, 0});
    taken += expected ? 1 : 0;
    for (const auto& encoder : encoders) REQUIRE(pack(*encoder, picture).empty() == !expected);
    if (!expected) std::fill_n(block, kCoefficients, std::int16_t{0});
  }
  CHECK(taken > 500);
  CHECK(taken < 3500);
}

}  // namespace
}  // namespace millrace::kernels::packed
