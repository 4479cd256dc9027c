// From packed coefficients to samples in one loop: blocks of every kind that takes a way of its own, and of all kinds
// mixed, against plain unpacking and the plain inverse DCT.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "kernels/cpu/jpeg/dct/fast_dct.h"
#include "kernels/cpu/jpeg/dct/packed_dct.h"
#include "kernels/jpeg/ordinary.h"
#include "tests/support/rounds.h"
#include "tests/unit/kernels/packed/packed_rig.h"

namespace millrace::kernels::packed {
namespace {

using jpeg::kBlock;
using jpeg::kCoefficients;
using jpeg::Precision;

using Factors64 = std::array<std::uint16_t, kCoefficients>;

// How far coefficients go in zig-zag order, how many are not 0 at most, and how large they may be.
struct Kind {
  const char* name;
  int end, most, bits;
};
constexpr Kind kKinds[] = {{"DC alone", 1, 0, 0},
                           {"corner of 2 x 2", 3, 2, 7},
                           {"corner of 4 x 4", 10, 9, 7},
                           {"just outside the corner", 11, 10, 7},
                           {"few in the first half", 32, 16, 6},
                           {"17 in the first half", 32, 17, 6},
                           {"few in the second half", 64, 16, 6},
                           {"up to 32", 64, 32, 7},
                           {"up to 33", 64, 33, 7},
                           {"all", 64, 63, 7},
                           {"a few beyond a byte", 10, 5, 11},
                           {"many beyond a byte", 64, 20, 11},
                           {"beyond 12 bits", 64, 12, 12},
                           {"anything", 64, 63, 12}};

// A coefficient of the largest magnitude that its column has left, or a random one.
int draw_value(std::mt19937& random, int bits, int left, bool largest) {
  const int most = std::min(left, (1 << bits) - 1);
  if (most < 1) return 0;
  const int magnitude = largest ? most : 1 + static_cast<int>(random() % static_cast<unsigned>(most));
  return random() % 2 == 0 ? magnitude : -magnitude;
}

// Ordinary, and where `largest` at the limit of what is.
void draw_block(std::int16_t* block, const Kind& kind, const Factors64& quant, bool largest, std::mt19937& random) {
  int left[kBlock];
  std::fill_n(left, kBlock, jpeg::kMostInColumn);
  std::fill_n(block, kCoefficients, std::int16_t{0});
  const auto put = [&](std::size_t i, int bits) {
    const std::size_t at = jpeg::kNatural[i];
    if (block[i] != 0) return;
    const int value = draw_value(random, bits, left[at % kBlock] / quant[at], largest);
    left[at % kBlock] -= std::abs(value) * quant[at];
    block[i] = static_cast<std::int16_t>(value);
  };
  const bool level_first = random() % 2 == 0;
  if (level_first) put(0, 11);
  for (int n = 0; n < kind.most; ++n) put(1 + random() % static_cast<unsigned>(std::max(1, kind.end - 1)), kind.bits);
  if (!level_first) put(0, 11);
}

// One component, a row of blocks.
Picture draw_row(int blocks, const Factors64& quant, const std::vector<Kind>& kinds, std::mt19937& random) {
  Picture picture = make_picture(make_header({kBlock * blocks, kBlock}, 1, 1, 1, 1));
  for (auto& table : picture.header.quant) {
    if (table) table = quant;
  }
  for (int i = 0; i < blocks; ++i)
    draw_block(picture.block(static_cast<std::size_t>(i)), kinds[random() % kinds.size()], quant, random() % 4 == 0,
               random);
  return picture;
}

constexpr std::ptrdiff_t kStride = kBlock * kGroupBlocks + 128;
constexpr std::ptrdiff_t kMargin = 64;

// Samples of blocks of the group that begins at `at`, with what is around them.
Bytes plain_samples(Picture& picture, std::size_t at, int count, const jpeg::Dequantiser& dequantiser,
                    Precision precision) {
  Bytes samples(kBlock * kStride, 0xEE);
  for (int i = 0; i < count; ++i) {
    alignas(64) std::int16_t block[kCoefficients];
    std::memcpy(block, picture.block(at + static_cast<std::size_t>(i)), sizeof block);
    const jpeg::BlockJob job{block, &dequantiser, samples.data() + kMargin + kBlock * i, kStride};
    const jpeg::InverseDct& plain = jpeg::scalar_inverse_dct();
    REQUIRE((precision == Precision::kExact ? plain.transform(&job, 1) : plain.transform_fast(&job, 1)));
  }
  return samples;
}

void check_row(Picture& picture, const Factors64& quant, std::mt19937& random) {
  Encoder encoder;
  Bytes bytes = pack(encoder, picture);
  REQUIRE_FALSE(bytes.empty());
  const std::size_t size = bytes.size();
  bytes.resize(size + kPadding, 0xEE);
  PackedImage image;
  REQUIRE(image.read({bytes.data(), size}, Check::kChecksum));
  jpeg::Dequantiser dequantiser = jpeg::make_dequantiser(quant);
  jpeg::add_fast_factors(quant, dequantiser);
  for (std::size_t g = 0; g < image.grid().groups(); ++g) {
    const Group group = image.group(g);
    const int first = static_cast<int>(random() % static_cast<unsigned>(group.blocks));
    const int count = 1 + static_cast<int>(random() % static_cast<unsigned>(group.blocks - first));
    for (const auto& [from, blocks] : {std::pair{0, group.blocks}, std::pair{first, count}}) {
      for (const Precision precision : {Precision::kExact, Precision::kFast}) {
        const Bytes expected =
            plain_samples(picture, g * kGroupBlocks + static_cast<std::size_t>(from), blocks, dequantiser, precision);
        for (const Target target : every_target()) {
          Bytes samples(kBlock * kStride, 0xEE);
          const jpeg::PackedRun run{.group = group,
                                    .first = from,
                                    .count = blocks,
                                    .dequantiser = &dequantiser,
                                    .out = samples.data() + kMargin,
                                    .stride = kStride};
          CAPTURE(name_of(target), from, blocks, precision == Precision::kExact);
          REQUIRE(jpeg::PackedDct(target).transform(run, precision));
          REQUIRE((samples == expected));
        }
      }
    }
  }
}

Factors64 draw_factors(std::mt19937& random, unsigned most) {
  Factors64 quant;
  for (std::uint16_t& factor : quant) factor = static_cast<std::uint16_t>(1 + random() % most);
  return quant;
}

TEST_CASE("blocks of each kind have the plain form's samples in every fused loop", "[packed]") {
  std::mt19937 random(61);
  for (const Kind& kind : kKinds) {
    for (int i = 0; i < rounds(12); ++i) {
      const Factors64 quant = draw_factors(random, i % 3 == 0 ? 1 : i % 3 == 1 ? 16 : 255);
      const int blocks = 1 + static_cast<int>(random() % 70);
      CAPTURE(kind.name, i, blocks);
      Picture picture = draw_row(blocks, quant, {kind}, random);
      check_row(picture, quant, random);
    }
  }
}

TEST_CASE("blocks of all kinds, mixed, have the plain form's samples in every fused loop", "[packed]") {
  std::mt19937 random(62);
  for (int i = 0; i < rounds(60); ++i) {
    std::vector<Kind> kinds;
    for (const Kind& kind : kKinds) {
      if (kinds.empty() || random() % 3 == 0) kinds.push_back(kind);
    }
    std::shuffle(kinds.begin(), kinds.end(), random);
    const Factors64 quant = draw_factors(random, i % 2 == 0 ? 1 : 40);
    CAPTURE(i);
    Picture picture = draw_row(1 + static_cast<int>(random() % 70), quant, kinds, random);
    check_row(picture, quant, random);
  }
}

}  // namespace
}  // namespace millrace::kernels::packed
