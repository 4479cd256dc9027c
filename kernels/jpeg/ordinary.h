// How large dequantised coefficients may be that all implementations of the accurate inverse DCT do alike. libjpeg's own
// differ from each other where numbers leave 16 bits between the passes, which no image that was once pixels reaches.
// Immutable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "kernels/jpeg/header.h"

namespace millrace::kernels::jpeg {

// Of the magnitudes of a column. What its first pass makes of them is at most 4 * 1.3871 times as much; below 16,384
// two such numbers can be added in 16 bits.
inline constexpr int kMostInColumn = 2944;

// Magnitudes that cannot add up to more than that, by row: in the first column, where DC is, and in the others.
inline constexpr int kHarmlessFirst[kBlock] = {1030, 560, 400, 300, 163, 163, 163, 163};
inline constexpr int kHarmlessOther[kBlock] = {800, 560, 420, 320, 211, 211, 211, 211};
static_assert(1030 + 560 + 400 + 300 + 4 * 163 <= kMostInColumn && 800 + 560 + 420 + 320 + 4 * 211 <= kMostInColumn);

// The same for the coefficient at `natural`.
constexpr int harmless_magnitude(std::size_t natural) {
  const std::size_t row = natural / kBlock;
  return natural % kBlock == 0 ? kHarmlessFirst[row] : kHarmlessOther[row];
}

// The closer look at a block in zig-zag order: whether every column's magnitudes stay within kMostInColumn. `factors`:
// in natural order.
template <typename Factor>
bool is_ordinary(const std::int16_t* coefficients, const std::array<Factor, kCoefficients>& factors) {
  std::int64_t sums[kBlock] = {};
  for (std::size_t i = 0; i < kCoefficients; ++i)
    sums[kNatural[i] % kBlock] += std::abs(std::int64_t{coefficients[i]} * factors[kNatural[i]]);
  for (const std::int64_t sum : sums) {
    if (sum > kMostInColumn) return false;
  }
  return true;
}

}  // namespace millrace::kernels::jpeg
