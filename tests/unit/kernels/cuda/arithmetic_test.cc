// The arithmetic of the CUDA reconstruction beside that of the CPU's kernels, which libjpeg-turbo and Pillow are
// compared with.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "kernels/cpu/jpeg/dct/inverse_dct.h"
#include "kernels/cpu/jpeg/rows.h"
#include "kernels/cpu/store.h"
#include "kernels/cuda/plan/weight_table.h"
#include "kernels/cuda/reconstruct/axis.h"
#include "kernels/cuda/reconstruct/colour.h"
#include "kernels/cuda/reconstruct/inverse_dct.h"
#include "kernels/cuda/reconstruct/reconstruct_rows.h"
#include "tests/support/rounds.h"

namespace millrace::kernels::cuda {
namespace {

int below_of(std::mt19937& random, int bound) {
  return static_cast<int>(random() % static_cast<unsigned>(bound));
}

// The weights of output i by sample of the crop.
std::vector<std::int32_t> spread(int in, int start, int count, const std::int32_t* weights) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(in));
  std::copy_n(weights, count, all.begin() + start);
  return all;
}

void check_side(const AxisSpec& spec, bool as_table) {
  const AxisWeights expected = axis_weights(spec);
  std::vector<std::int32_t> tables{-1};
  const std::int32_t* const table = as_table ? &tables[append_weight_table(spec, tables)] : nullptr;
  const Side side = make_side(spec.in, spec.out, spec.first, spec.count, spec.filter, table);
  std::vector<std::int32_t> weights(static_cast<std::size_t>(side.most_taps()));
  CAPTURE(spec.in, spec.out, spec.first, spec.count, static_cast<int>(spec.filter), as_table);
  for (int i = 0; i < spec.count; ++i) {
    const Window window = side.window(i);
    REQUIRE(window.start >= 0);
    REQUIRE(window.count >= 1);
    REQUIRE(window.end() <= spec.in);
    REQUIRE(window.count <= side.most_taps());
    side.weigh(i, window, weights.data(), 1);
    const auto at = static_cast<std::size_t>(i);
    REQUIRE(spread(spec.in, window.start, window.count, weights.data()) ==
            spread(spec.in, expected.start[at], expected.taps, &expected.weight[at * expected.taps]));
  }
}

AxisSpec draw_side(std::mt19937& random, Filter filter) {
  const int most = below_of(random, 4) == 0 ? 5000 : 500;
  const int in = 1 + below_of(random, most), out = below_of(random, 8) == 0 ? in : 1 + below_of(random, 300);
  const int first = below_of(random, out);
  return {Axis::kColumns, 3, in, out, first, 1 + below_of(random, out - first), filter};
}

jpeg::Dequantiser random_factors(std::mt19937& random, int most) {
  std::array<std::uint16_t, 64> quant{};
  for (auto& factor : quant) factor = static_cast<std::uint16_t>(1 + below_of(random, most));
  return jpeg::make_dequantiser(quant);
}

// False: out of the ordinary.
bool transform_here(const std::int16_t* zig_zag, const jpeg::Dequantiser& factors, std::uint8_t* samples) {
  std::int32_t block[64];
  for (std::size_t k = 0; k < 64; ++k) {
    const std::size_t natural = jpeg::kNatural[k];
    block[natural] = zig_zag[k] * factors.factors[natural];
  }
  bool ordinary = true;
  for (int x = 0; x < 8; ++x) {
    Line column{};
    for (int y = 0; y < 8; ++y) column.at[y] = block[8 * y + x];
    ordinary &= is_ordinary(column);
    column = transform_column(ordinary ? column : Line{});
    for (int y = 0; y < 8; ++y) block[8 * y + x] = column.at[y];
  }
  for (int y = 0; y < 8; ++y) {
    Line row{};
    std::copy_n(block + 8 * y, 8, row.at);
    row = transform_row(row);
    for (int x = 0; x < 8; ++x) samples[8 * y + x] = static_cast<std::uint8_t>(row.at[x]);
  }
  return ordinary;
}

std::vector<std::uint8_t> random_samples(std::mt19937& random, std::size_t count) {
  std::vector<std::uint8_t> samples(count);
  for (auto& sample : samples) sample = static_cast<std::uint8_t>(random());
  return samples;
}

}  // namespace

TEST_CASE("a GPU's weights are the CPU's, bit by bit", "[cuda]") {
  std::mt19937 random(1);
  for (int i = 0; i < rounds(300); ++i) {
    for (const Filter filter : {Filter::kBox, Filter::kBilinear, Filter::kBicubic})
      check_side(draw_side(random, filter), false);
    for (const Filter filter : {Filter::kNearest, Filter::kHamming, Filter::kLanczos, Filter::kBicubic})
      check_side(draw_side(random, filter), true);
  }
}

TEST_CASE("a GPU's weights are the CPU's for sides of every length up to 700", "[cuda]") {
  for (int in = 1; in <= 700; ++in) check_side({Axis::kRows, 1, in, 224, 0, 224, Filter::kBilinear}, false);
  for (int in = 1; in <= 700; in += 7) check_side({Axis::kRows, 1, in, 224, 0, 224, Filter::kBicubic}, false);
}

TEST_CASE("a GPU's weights are the CPU's for the longest side", "[cuda]") {
  for (const Filter filter : {Filter::kBox, Filter::kBilinear, Filter::kBicubic})
    check_side({Axis::kColumns, 3, 65500, 224, 0, 224, filter}, false);
}

TEST_CASE("narrow weights add up to one, and sums of two channels in a word are those of one", "[cuda]") {
  std::mt19937 random(4);
  for (int i = 0; i < rounds(2000); ++i) {
    const AxisSpec spec = draw_side(random, i % 2 == 0 ? Filter::kBox : Filter::kBilinear);
    const Side side = make_side(spec.in, spec.out, spec.first, spec.count, spec.filter, nullptr);
    const Window window = side.window(0);
    std::vector<std::int32_t> weights(static_cast<std::size_t>(window.count));
    side.weigh(0, window, weights.data(), 1);
    narrow(weights.data(), window.count, 1);
    NarrowSums sums;
    int expected[3] = {128, 128, 128}, all = 0;
    for (const std::int32_t weight : weights) {
      const std::uint32_t pixel = i % 3 == 0 ? 0xffffff : random() & 0xffffff;
      REQUIRE(weight >= 0);
      all += weight;
      sums.add(pixel, weight);
      for (int c = 0; c < 3; ++c) expected[c] += channel_of(pixel, c) * weight;
    }
    REQUIRE(all == 256);
    const Channels rounded = sums.rounded();
    REQUIRE(sums.word() == packed(rounded));
    for (int c = 0; c < 3; ++c) REQUIRE(rounded.at[c] == expected[c] >> 8);
  }
}

TEST_CASE("a GPU's inverse DCT is the CPU's, and refuses the same blocks", "[cuda]") {
  std::mt19937 random(2);
  int ordinary = 0, odd = 0;
  for (int i = 0; i < rounds(20'000); ++i) {
    const jpeg::Dequantiser factors = random_factors(random, 1 + below_of(random, 60));
    alignas(64) std::int16_t block[64] = {};
    const int range = 1 << below_of(random, 12), most = 1 + below_of(random, 64);
    for (int k = 0; k < most; ++k) block[k] = static_cast<std::int16_t>(below_of(random, 2 * range) - range);
    std::uint8_t here[64], there[64];
    const bool taken = transform_here(block, factors, here);
    const jpeg::BlockJob job{block, &factors, there, 8};
    REQUIRE(taken == jpeg::scalar_inverse_dct().transform(&job, 1));
    if (taken) REQUIRE(std::equal(here, here + 64, there));
    ++(taken ? ordinary : odd);
  }
  REQUIRE(ordinary > 1000);
  REQUIRE(odd > 1000);
}

TEST_CASE("a GPU's colours are the CPU's, all of them", "[cuda]") {
  const jpeg::PixelRowKernels& cpu = jpeg::scalar_pixel_row_kernels();
  for (int blue = 0; blue < 256; ++blue) {
    for (int red = 0; red < 256; ++red) {
      std::uint8_t luma[256], blues[256], reds[256], pixels[3 * 256];
      for (int y = 0; y < 256; ++y) luma[y] = static_cast<std::uint8_t>(y);
      std::fill_n(blues, 256, static_cast<std::uint8_t>(blue));
      std::fill_n(reds, 256, static_cast<std::uint8_t>(red));
      cpu.to_rgb(luma, blues, reds, 256, pixels);
      bool same = true;
      for (int y = 0; y < 256; ++y) {
        const std::uint8_t* const rgb = pixels + 3 * y;
        const Channels pixel = to_rgb(y, blue, red);
        same = same && packed(pixel) == packed(rgb[0], rgb[1], rgb[2]) &&
               luma_of(pixel) == kernels::luma(rgb[0], rgb[1], rgb[2]);
      }
      REQUIRE(same);
    }
  }
}

TEST_CASE("a GPU smooths chroma as the CPU does", "[cuda]") {
  const jpeg::PixelRowKernels& cpu = jpeg::scalar_pixel_row_kernels();
  std::mt19937 random(3);
  for (int i = 0; i < rounds(200); ++i) {
    constexpr int kCount = 40;
    const auto near = random_samples(random, kCount + 2), far = random_samples(random, kCount + 2);
    const int row = below_of(random, 2);
    std::uint8_t wide[2 * kCount], both[2 * kCount], down[kCount];
    std::int16_t sums[kCount + 2];
    cpu.widen(near.data() + 1, kCount, wide);
    cpu.blend(near.data() + 1, far.data() + 1, kCount, sums + 1);
    cpu.widen_sums(sums + 1, kCount, both);
    cpu.blend_only(near.data() + 1, far.data() + 1, kCount, 1 + row, down);
    for (std::size_t x = 0; x < 2 * kCount; ++x) {
      const std::size_t own = x / 2 + 1, beside = x % 2 == 0 ? own - 1 : own + 1;
      const auto sum = [&](std::size_t at) { return 3 * near[at] + far[at]; };
      REQUIRE(smooth_across(static_cast<int>(x), near[own], near[beside]) == wide[x]);
      REQUIRE(smooth_sums(static_cast<int>(x), sum(own), sum(beside)) == both[x]);
    }
    for (std::size_t x = 0; x < kCount; ++x) REQUIRE(smooth_down(row, near[x + 1], far[x + 1]) == down[x]);
  }
}

}  // namespace millrace::kernels::cuda
