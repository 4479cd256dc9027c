// The inverse DCT of `fast` against the transform's definition in double precision, and target against target.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "kernels/cpu/jpeg/dct/fast_dct.h"

namespace millrace::kernels::jpeg {
namespace {

using Quant = std::array<std::uint16_t, kCoefficients>;
using Samples = std::array<double, kCoefficients>;

Dequantiser dequantiser_of(const Quant& quant) {
  Dequantiser made = make_dequantiser(quant);
  add_fast_factors(quant, made);
  return made;
}

Quant random_quant(std::mt19937& random, unsigned most) {
  Quant quant;
  for (std::uint16_t& factor : quant) factor = static_cast<std::uint16_t>(1 + random() % most);
  return quant;
}

double basis(std::size_t frequency, std::size_t at) {
  const double scale = frequency == 0 ? std::sqrt(1.0 / 8) : 0.5;
  return scale * std::cos((2 * static_cast<double>(at) + 1) * static_cast<double>(frequency) * std::numbers::pi / 16);
}

// Both directions by the definition (T.81 A.3.3); without level shift.
Samples transformed(const Samples& in, bool inverse) {
  Samples out{};
  for (std::size_t a = 0; a < 64; ++a) {
    for (std::size_t b = 0; b < 64; ++b) {
      const std::size_t frequency = inverse ? b : a, at = inverse ? a : b;
      out[a] += in[b] * basis(frequency / 8, at / 8) * basis(frequency % 8, at % 8);
    }
  }
  return out;
}

struct alignas(64) Block {
  std::int16_t coefficients[kCoefficients] = {};  // zig-zag
};

// Noise with an edge, or smooth, through the forward transform and quantisation.
Block random_picture_block(std::mt19937& random, const Quant& quant) {
  Samples samples;
  const int noise = 1 + static_cast<int>(random() % 60), slope = static_cast<int>(random() % 24);
  const std::size_t edge = random() % 9;
  for (std::size_t i = 0; i < 64; ++i) {
    const int level = (i % 8 < edge ? -90 : 80) / (1 + noise / 10) + slope * static_cast<int>(i / 8) +
                      static_cast<int>(random() % static_cast<unsigned>(noise));
    samples[i] = std::clamp(level, -128, 127);
  }
  const Samples frequencies = transformed(samples, false);
  Block block;
  for (std::size_t i = 0; i < kCoefficients; ++i)
    block.coefficients[i] = static_cast<std::int16_t>(std::lround(frequencies[kNatural[i]] / quant[kNatural[i]]));
  return block;
}

Samples expected(const Block& block, const Quant& quant) {
  Samples frequencies;
  for (std::size_t i = 0; i < kCoefficients; ++i) frequencies[kNatural[i]] = block.coefficients[i] * quant[kNatural[i]];
  Samples samples = transformed(frequencies, true);
  for (double& sample : samples) sample = std::clamp(sample + 128, 0.0, 255.0);
  return samples;
}

// What `target` makes of blocks of one component; empty: it refuses.
std::vector<std::uint8_t> made(Target target, std::vector<Block> blocks, const Dequantiser& dequantiser) {
  std::vector<std::uint8_t> out(blocks.size() * kCoefficients);
  std::vector<BlockJob> jobs;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    jobs.push_back({blocks[i].coefficients, &dequantiser, out.data() + i * kCoefficients, kBlock});
  if (!inverse_dct(target).transform_fast(jobs.data(), static_cast<int>(jobs.size()))) return {};
  for (const Block& block : blocks)
    REQUIRE(std::all_of(block.coefficients, block.coefficients + kCoefficients, [](int value) { return value == 0; }));
  return out;
}

}  // namespace

TEST_CASE("pictures' blocks come out of the fast transform within two levels or so of its definition", "[jpeg]") {
  std::mt19937 random(1);
  double sum = 0;
  for (int round = 0; round < 3000; ++round) {
    const Quant quant = random_quant(random, round % 2 == 0 ? 3 : 60);
    const Block block = random_picture_block(random, quant);
    const Samples wanted = expected(block, quant);

    const std::vector<std::uint8_t> out = made(Target::kScalar, {block}, dequantiser_of(quant));

    REQUIRE(out.size() == kCoefficients);
    for (std::size_t i = 0; i < kCoefficients; ++i) {
      const double error = std::fabs(out[i] - wanted[i]);
      sum += error;
      if (error > 2.5) FAIL("block " << round << " is off by " << error << " at " << i);
    }
  }
  REQUIRE(sum / (3000.0 * 64) < 0.4);  // rounding alone makes 0.25
}

TEST_CASE("the fast transform makes the same of any blocks on every target", "[jpeg]") {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    const Quant quant = random_quant(random, 1U << random() % 17);
    std::vector<Block> blocks(1 + random() % 9);
    const int density = 1 + static_cast<int>(random() % 12);
    for (Block& block : blocks) {
      for (std::size_t i = 0; i < kCoefficients; ++i) {
        const auto most = static_cast<int>(2 * (round % 3 == 0 ? 2944 : 300) / quant[kNatural[i]] / density + 1);
        if (random() % static_cast<unsigned>(density) == 0)
          block.coefficients[i] =
              static_cast<std::int16_t>(static_cast<int>(random() % static_cast<unsigned>(most)) - most / 2);
      }
    }
    const Dequantiser dequantiser = dequantiser_of(quant);
    const std::vector<std::uint8_t> plain = made(Target::kScalar, blocks, dequantiser);

    for (const Target target : available_targets()) {
      INFO("round " << round << " " << name_of(target));
      REQUIRE(made(target, blocks, dequantiser) == plain);
    }
  }
}

TEST_CASE("a block of DC alone is flat in the fast transform", "[jpeg]") {
  Quant quant;
  quant.fill(7);
  const Dequantiser dequantiser = dequantiser_of(quant);
  for (int level = -146; level <= 146; ++level) {
    const int sample = std::clamp(((7 * level + 4) >> 3) + 128, 0, 255);
    Block block;
    block.coefficients[0] = static_cast<std::int16_t>(level);

    for (const Target target : available_targets())
      REQUIRE(made(target, {block}, dequantiser) == std::vector<std::uint8_t>(64, static_cast<std::uint8_t>(sample)));
  }
}

}  // namespace millrace::kernels::jpeg
