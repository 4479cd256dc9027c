// Dequantised coefficients to samples, bit-equal to libjpeg-turbo's accurate integer inverse DCT (islow: Loeffler,
// Ligtenberg and Moschytz, 12 multiplications, ICASSP 1989) as kernels/cpu/jpeg/dct/inverse_dct.h has it: two passes of
// eight lines each, which eight threads make.
#pragma once

#include <cstdint>

#include "kernels/cuda/host_device.h"

namespace millrace::kernels::cuda {

// Blocks with a column whose magnitudes add up to more are not done here: implementations differ there.
inline constexpr int kMostInColumn = 2944;

struct Line {
  std::int32_t at[8];
};

// One side's transform, scaled by 2^13.
MILLRACE_HD inline Line transform_line(const Line& in) {
  const std::int32_t* x = in.at;
  const std::int32_t z1 = (x[2] + x[6]) * 4433;
  const std::int32_t low = z1 - x[6] * 15137, high = z1 + x[2] * 6270;
  const std::int32_t sum = (x[0] + x[4]) * (1 << 13), difference = (x[0] - x[4]) * (1 << 13);
  const std::int32_t even[4] = {sum + high, difference + low, difference - low, sum - high};

  const std::int32_t z5 = (x[7] + x[3] + x[5] + x[1]) * 9633;
  const std::int32_t a = (x[7] + x[1]) * -7373, b = (x[5] + x[3]) * -20995;
  const std::int32_t c = (x[7] + x[3]) * -16069 + z5, d = (x[5] + x[1]) * -3196 + z5;
  const std::int32_t odd[4] = {x[1] * 12299 + a + d, x[3] * 25172 + b + c, x[5] * 16819 + b + d, x[7] * 2446 + a + c};

  Line out{};
  for (int i = 0; i < 4; ++i) {
    out.at[i] = even[i] + odd[i];
    out.at[7 - i] = even[i] - odd[i];
  }
  return out;
}

MILLRACE_HD constexpr std::int32_t descale(std::int32_t value, int bits) {
  return (value + (1 << (bits - 1))) >> bits;
}

// Whether a column's magnitudes are ordinary.
MILLRACE_HD inline bool is_ordinary(const Line& column) {
  std::int32_t sum = 0;
  for (const std::int32_t value : column.at) sum += value < 0 ? -value : value;
  return sum <= kMostInColumn;
}

// The first pass, down a column. REQUIRES: an ordinary one.
MILLRACE_HD inline Line transform_column(const Line& column) {
  Line result = transform_line(column);
  for (std::int32_t& value : result.at) value = descale(value, 11);
  return result;
}

MILLRACE_HD constexpr std::int32_t to_byte(std::int32_t value) {
  return value < 0 ? 0 : value > 255 ? 255 : value;
}

// The second pass, along a row: samples.
MILLRACE_HD inline Line transform_row(const Line& row) {
  Line samples = transform_line(row);
  for (std::int32_t& value : samples.at) value = to_byte(descale(value, 18) + 128);
  return samples;
}

}  // namespace millrace::kernels::cuda
