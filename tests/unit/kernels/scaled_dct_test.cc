// The scaled inverse DCT against the transform's definition in double precision.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>
#include <random>

#include "kernels/cpu/jpeg/dct/scaled_dct.h"

namespace millrace::kernels::jpeg {
namespace {

double basis(int points, int frequency, int at) {
  const double scale = frequency == 0 ? std::sqrt(1.0 / points) : std::sqrt(2.0 / points);
  return scale * std::cos((2 * at + 1) * frequency * std::numbers::pi / (2 * points));
}

// Sample (x, y) of the orthonormal inverse DCT of `side` points, of coefficients that were scaled for 8 points.
double sample(const double (&coefficients)[8][8], int side, int x, int y) {
  double sum = 0;
  for (int v = 0; v < side; ++v) {
    for (int u = 0; u < side; ++u) sum += coefficients[v][u] * basis(side, v, y) * basis(side, u, x);
  }
  return std::clamp(sum * side / 8 + 128, 0.0, 255.0);
}

}  // namespace

TEST_CASE("blocks become 4, 2 or 1 samples a side as defined, and are zeroed", "[jpeg]") {
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    std::array<std::uint16_t, kCoefficients> quant;
    for (std::uint16_t& factor : quant) factor = static_cast<std::uint16_t>(1 + random() % 30);
    const Dequantiser dequantiser = make_dequantiser(quant);
    alignas(64) std::int16_t block[kCoefficients] = {};
    double coefficients[8][8] = {};
    for (std::size_t k = 0; k < kCoefficients; ++k) {
      if (k > 0 && random() % 3 != 0) continue;
      const std::size_t at = kNatural[k];
      const int most = (k == 0 ? 1000 : 300) / quant[at] + 1;
      block[k] = static_cast<std::int16_t>(static_cast<int>(random() % static_cast<unsigned>(2 * most)) - most);
      coefficients[at / 8][at % 8] = block[k] * quant[at];
    }
    const int side = 1 << (i % 3);
    std::uint8_t out[4][16];
    for (auto& row : out) std::fill(row, row + 16, std::uint8_t{77});

    const bool done = transform_scaled({block, &dequantiser, out[0], 16}, side);

    REQUIRE(done);
    REQUIRE(std::all_of(block, block + kCoefficients, [](int value) { return value == 0; }));
    for (int y = 0; y < 4; ++y) {
      for (int x = 0; x < 16; ++x) {
        INFO("block " << i << " side " << side << " at " << x << "," << y);
        if (x < side && y < side)
          REQUIRE(std::fabs(out[y][x] - sample(coefficients, side, x, y)) <= 0.6);
        else
          REQUIRE(out[y][x] == 77);
      }
    }
  }
}

TEST_CASE("a coefficient beyond all images' is refused by the scaled transform", "[jpeg]") {
  std::array<std::uint16_t, kCoefficients> quant;
  quant.fill(65535);
  const Dequantiser dequantiser = make_dequantiser(quant);
  for (const int side : {1, 2, 4}) {
    for (const int level : {INT16_MIN, -1, 1, INT16_MAX}) {
      alignas(64) std::int16_t block[kCoefficients] = {static_cast<std::int16_t>(level)};
      std::uint8_t out[4][4];

      REQUIRE_FALSE(transform_scaled({block, &dequantiser, out[0], 4}, side));
    }
  }
}

}  // namespace millrace::kernels::jpeg
