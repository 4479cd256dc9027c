// What a picture becomes: specifications, weights, elements.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/tensor/axis_weights.h"
#include "kernels/tensor/element.h"
#include "kernels/tensor/store_spec.h"

using namespace millrace::kernels;

namespace {

constexpr Filter kFilters[] = {Filter::kNearest, Filter::kBox,     Filter::kBilinear,
                               Filter::kHamming, Filter::kBicubic, Filter::kLanczos};

// Small and large sides alike.
int random_side(std::mt19937& random, int largest) {
  const auto pick = [&](int most) { return std::uniform_int_distribution<int>(1, most)(random); };
  return pick(pick(largest));
}

// The float16 closest to `value`, found by trying all of them; the even one of two equally close.
std::uint16_t nearest_float16(double value) {
  const auto decode = [](int bits) {
    const int exponent = (bits >> 10) & 31;
    const double fraction = bits & 1023;
    return exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  };
  int best = 0;
  for (int bits = 0; bits <= 0x7C00; ++bits) {
    const double distance = std::fabs(decode(bits) - std::fabs(value));
    const double best_distance = std::fabs(decode(best) - std::fabs(value));
    if (distance < best_distance || (distance == best_distance && bits % 2 == 0)) best = bits;
  }
  return static_cast<std::uint16_t>(best | (std::signbit(value) ? 0x8000 : 0));
}

}  // namespace

TEST_CASE("rows come first exactly where the height loses more than twice as many pixels", "[kernels][tensor]") {
  const auto rows_first = [](Size source, Size target, PassOrder order = PassOrder::kAsPillow13) {
    return filters_rows_first({3, source, target, whole(target), Filter::kBilinear, order});
  };

  REQUIRE(rows_first({300, 400}, {224, 224}));
  REQUIRE_FALSE(rows_first({300, 400}, {224, 224}, PassOrder::kColumnsFirst));
  REQUIRE_FALSE(rows_first({31, 61}, {14, 27}));
  REQUIRE(rows_first({31, 62}, {14, 27}));
  REQUIRE(rows_first({69, 5}, {81, 2}));
  REQUIRE_FALSE(rows_first({10, 50}, {100, 50}));
  REQUIRE_FALSE(rows_first({10, 50}, {100, 60}));
  REQUIRE_FALSE(rows_first({100, 300}, {100, 60}));
}

TEST_CASE("weights sum to one and fit the packed forms of every target", "[kernels][tensor]") {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    const int in = random_side(random, 700);
    const int out = random_side(random, 700);
    const AxisSpec spec{Axis::kRows, 1, in, out, 0, out, kFilters[random() % 6]};

    const AxisWeights weights = axis_weights(spec);

    for (int i = 0; i < out; ++i) {
      std::int64_t sum = 0;
      for (int t = 0; t < weights.taps; ++t) {
        const std::int32_t weight = weights.weight[static_cast<std::size_t>(i) * weights.taps + t];
        if (std::abs(weight) >= 3 << (kPrecisionBits - 1))
          FAIL("a weight of " << weight << " for " << in << " -> " << out);
        sum += weight;
      }
      if (std::abs(sum - (1 << kPrecisionBits)) > weights.taps)
        FAIL("weights sum to " << sum << " for " << in << " -> " << out);
      if (weights.start[i] < 0 || weights.start[i] + weights.taps > in)
        FAIL("taps leave the picture for " << in << " -> " << out);
      if (i > 0 && weights.start[i] < weights.start[i - 1]) FAIL("starts fall for " << in << " -> " << out);
    }
  }
  SUCCEED();
}

TEST_CASE("specs that make no sense are recognised", "[kernels][tensor]") {
  const ResampleSpec good{3, {10, 10}, {5, 5}, {1, 1, 4, 4}, Filter::kBox};
  const auto with = [&](auto change) {
    ResampleSpec spec = good;
    change(spec);
    return is_valid(spec);
  };

  REQUIRE(is_valid(good));
  REQUIRE_FALSE(with([](ResampleSpec& spec) { spec.channels = 2; }));
  REQUIRE_FALSE(with([](ResampleSpec& spec) { spec.source.width = 0; }));
  REQUIRE_FALSE(with([](ResampleSpec& spec) { spec.target.height = kMaxSide + 1; }));
  REQUIRE_FALSE(with([](ResampleSpec& spec) { spec.window.left = 2; }));
  REQUIRE_FALSE(with([](ResampleSpec& spec) { spec.window.top = -1; }));
  REQUIRE_FALSE(with([](ResampleSpec& spec) { spec.window.width = 0; }));
  REQUIRE_FALSE(with([](ResampleSpec& spec) { spec.window = {1, 1, 2147483647, 4}; }));
}

TEST_CASE("grey is Pillow's luma", "[kernels][tensor]") {
  REQUIRE(luma(255, 255, 255) == 255);
  REQUIRE(luma(255, 0, 0) == 76);
  REQUIRE(luma(0, 255, 0) == 150);
  REQUIRE(luma(0, 0, 255) == 29);
  REQUIRE(luma(0, 0, 0) == 0);
}

TEST_CASE("float16 rounds to the nearest of all float16 values, ties to even", "[kernels][tensor]") {
  std::mt19937 random(2);
  const auto check = [](float value) {
    INFO(value);
    REQUIRE(to_float16(value) == nearest_float16(value));
  };

  for (const float value : {0.0F, -0.0F, 1.0F, -2.5F, 65504.0F, 0x1p-14F, 0x1p-24F, 0x1p-25F, 0x1.8p-25F, 0x1p-26F,
                            0x1.ffcp-15F, 0x1.ffep-15F, 1.0F + 0x1p-11F, 1.0F + 0x3p-11F, 0x1.ffdffep15F, 1e-30F}) {
    check(value);
  }
  for (int i = 0; i < 300; ++i)
    check(std::ldexp(static_cast<float>(random()) / 0x1p32F - 0.5F, static_cast<int>(random() % 36) - 22));
  REQUIRE(to_float16(65519.996F) == 0x7BFF);
  REQUIRE(to_float16(65520.0F) == 0x7C00);
  REQUIRE(to_float16(-std::numeric_limits<float>::infinity()) == 0xFC00);
  REQUIRE((to_float16(std::numeric_limits<float>::quiet_NaN()) & 0x7FFF) > 0x7C00);
}

TEST_CASE("bfloat16 rounds to the nearest, ties to even", "[kernels][tensor]") {
  REQUIRE(to_bfloat16(1.0F) == 0x3F80);
  REQUIRE(to_bfloat16(std::bit_cast<float>(0x3F808000U)) == 0x3F80);
  REQUIRE(to_bfloat16(std::bit_cast<float>(0x3F818000U)) == 0x3F82);
  REQUIRE(to_bfloat16(std::bit_cast<float>(0x3F808001U)) == 0x3F81);
  REQUIRE(to_bfloat16(std::bit_cast<float>(0xBF80FFFFU)) == 0xBF81);
  REQUIRE(to_bfloat16(std::bit_cast<float>(0x7F7FFFFFU)) == 0x7F80);
  REQUIRE(to_bfloat16(std::bit_cast<float>(0x00000001U)) == 0);
  REQUIRE((to_bfloat16(std::bit_cast<float>(0x7F800001U)) & 0x7FFF) > 0x7F80);
}
