#include "kernels/cpu/jpeg/dct/scaled_dct.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

namespace millrace::kernels::jpeg {
namespace {

constexpr int kConstantBits = 13;
constexpr int kMostMagnitude = 1 << 14;

// Position in natural order to position in zig-zag order.
constexpr std::array<std::uint8_t, kCoefficients> kZigZag = [] {
  std::array<std::uint8_t, kCoefficients> order{};
  for (std::size_t i = 0; i < kCoefficients; ++i) order[kNatural[i]] = static_cast<std::uint8_t>(i);
  return order;
}();

std::uint8_t to_sample(std::int32_t level) {
  return static_cast<std::uint8_t>(std::clamp(level + 128, 0, 255));
}

// The lowest kSide x kSide coefficients, dequantised. False: too large for 32-bit sums.
template <int kSide>
bool dequantise(const BlockJob& job, std::int32_t values[kSide * kSide]) {
  std::int32_t most = 0;
  for (std::size_t row = 0; row < kSide; ++row) {
    for (std::size_t column = 0; column < kSide; ++column) {
      const std::size_t at = row * kBlock + column;
      const std::int32_t value = job.coefficients[kZigZag[at]] * job.dequantiser->factors[at];
      values[row * kSide + column] = value;
      most = std::max(most, std::abs(value));
    }
  }
  return most < kMostMagnitude;
}

struct Four {
  std::int32_t at[4];
};

// The four-point transform times 2^13 * sqrt(2).
Four transform_four(std::int32_t a, std::int32_t b, std::int32_t c, std::int32_t d) {
  const std::int32_t sum = (a + c) * (1 << kConstantBits), difference = (a - c) * (1 << kConstantBits);
  const std::int32_t outer = b * 10703 + d * 4433, inner = b * 4433 - d * 10703;
  return {{sum + outer, difference + inner, difference - inner, sum - outer}};
}

std::int32_t descale(std::int32_t value, int bits) {
  return (value + (1 << (bits - 1))) >> bits;
}

void transform_4x4(const std::int32_t values[16], std::uint8_t* out, std::ptrdiff_t stride) {
  constexpr int kKept = 2;
  std::int32_t half[4][4];
  for (std::size_t x = 0; x < 4; ++x) {
    const Four column = transform_four(values[x], values[4 + x], values[8 + x], values[12 + x]);
    for (std::size_t y = 0; y < 4; ++y) half[y][x] = descale(column.at[y], kConstantBits - kKept);
  }
  for (std::size_t y = 0; y < 4; ++y, out += stride) {
    const Four row = transform_four(half[y][0], half[y][1], half[y][2], half[y][3]);
    for (std::size_t x = 0; x < 4; ++x) out[x] = to_sample(descale(row.at[x], kConstantBits + kKept + 3));
  }
}

void transform_2x2(const std::int32_t values[4], std::uint8_t* out, std::ptrdiff_t stride) {
  const std::int32_t left = values[0] + values[2], left_below = values[0] - values[2];
  const std::int32_t right = values[1] + values[3], right_below = values[1] - values[3];
  out[0] = to_sample(descale(left + right, 3));
  out[1] = to_sample(descale(left - right, 3));
  out[stride] = to_sample(descale(left_below + right_below, 3));
  out[stride + 1] = to_sample(descale(left_below - right_below, 3));
}

template <int kSide>
bool transform_block(const BlockJob& job) {
  std::int32_t values[kSide * kSide];
  if (!dequantise<kSide>(job, values)) return false;
  std::memset(job.coefficients, 0, kCoefficients * sizeof(std::int16_t));
  if constexpr (kSide == 1) *job.out = to_sample(descale(values[0], 3));
  if constexpr (kSide == 2) transform_2x2(values, job.out, job.stride);
  if constexpr (kSide == 4) transform_4x4(values, job.out, job.stride);
  return true;
}

}  // namespace

bool transform_scaled(const BlockJob& job, int side) {
  if (side == 1) return transform_block<1>(job);
  return side == 2 ? transform_block<2>(job) : transform_block<4>(job);
}

}  // namespace millrace::kernels::jpeg
