// The inverse DCT as plain arithmetic in 32 bits, the choice among all, and what they share.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/jpeg/dct/fast_dct.h"
#include "kernels/jpeg/ordinary.h"

namespace millrace::kernels::jpeg {
namespace {

constexpr int kConstantBits = 13;
constexpr int kCachedBits = 2;

struct Line {
  std::int32_t at[kBlock];
};

// One side's transform, scaled by 2^13.
Line transform_line(const Line& in) {
  const std::int32_t* x = in.at;
  const std::int32_t z1 = (x[2] + x[6]) * 4433;
  const std::int32_t low = z1 - x[6] * 15137, high = z1 + x[2] * 6270;
  const std::int32_t sum = (x[0] + x[4]) * (1 << kConstantBits), difference = (x[0] - x[4]) * (1 << kConstantBits);
  const std::int32_t even[4] = {sum + high, difference + low, difference - low, sum - high};

  const std::int32_t z5 = (x[7] + x[3] + x[5] + x[1]) * 9633;
  const std::int32_t a = (x[7] + x[1]) * -7373, b = (x[5] + x[3]) * -20995;
  const std::int32_t c = (x[7] + x[3]) * -16069 + z5, d = (x[5] + x[1]) * -3196 + z5;
  const std::int32_t odd[4] = {x[1] * 12299 + a + d, x[3] * 25172 + b + c, x[5] * 16819 + b + d, x[7] * 2446 + a + c};

  Line out;
  for (int i = 0; i < 4; ++i) {
    out.at[i] = even[i] + odd[i];
    out.at[7 - i] = even[i] - odd[i];
  }
  return out;
}

std::int32_t descale(std::int32_t value, int bits) {
  return (value + (1 << (bits - 1))) >> bits;
}

void transform_block(const BlockJob& job) {
  std::int32_t block[kBlock][kBlock];
  for (std::size_t i = 0; i < kCoefficients; ++i)
    block[kNatural[i] / kBlock][kNatural[i] % kBlock] = job.coefficients[i] * job.dequantiser->factors[kNatural[i]];
  for (int column = 0; column < kBlock; ++column) {
    Line line;
    for (int row = 0; row < kBlock; ++row) line.at[row] = block[row][column];
    line = transform_line(line);
    for (int row = 0; row < kBlock; ++row) block[row][column] = descale(line.at[row], kConstantBits - kCachedBits);
  }
  for (int row = 0; row < kBlock; ++row) {
    Line line;
    std::copy_n(block[row], kBlock, line.at);
    line = transform_line(line);
    for (int column = 0; column < kBlock; ++column) {
      const std::int32_t sample = descale(line.at[column], kConstantBits + kCachedBits + 3) + 128;
      job.out[row * job.stride + column] = static_cast<std::uint8_t>(std::clamp(sample, 0, 255));
    }
  }
}

bool transform(const BlockJob* jobs, int count) {
  for (int i = 0; i < count; ++i) {
    if (!is_ordinary(jobs[i])) return false;
    transform_block(jobs[i]);
    std::memset(jobs[i].coefficients, 0, kCoefficients * sizeof(std::int16_t));
  }
  return true;
}

}  // namespace

bool is_ordinary(const BlockJob& job) {
  return is_ordinary(job.coefficients, job.dequantiser->factors);
}

Dequantiser make_dequantiser(const std::array<std::uint16_t, kCoefficients>& quant) {
  Dequantiser result;
  for (std::size_t i = 0; i < kCoefficients; ++i) {
    // Factors beyond 16 bits with a sign leave only coefficients of 0 as ordinary, which they keep 0.
    result.factors[i] = static_cast<std::int16_t>(std::min<int>(quant[i], INT16_MAX));
    result.harmless[i] = static_cast<std::int16_t>(harmless_magnitude(i) / quant[i]);
  }
  return result;
}

const InverseDct& scalar_inverse_dct() {
  static constexpr InverseDct kTransform{transform, transform_fast_scalar};
  return kTransform;
}

const InverseDct& inverse_dct(Target target) {
#if defined(__x86_64__)
  if (target == Target::kAvx512) return avx512_inverse_dct();
  if (target == Target::kAvx512Bw) return avx512bw_inverse_dct();
  if (target != Target::kScalar) return avx2_inverse_dct();
#endif
  static_cast<void>(target);
  return scalar_inverse_dct();
}

}  // namespace millrace::kernels::jpeg
