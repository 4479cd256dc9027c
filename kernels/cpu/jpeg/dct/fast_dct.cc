#include "kernels/cpu/jpeg/dct/fast_dct.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "kernels/jpeg/ordinary.h"

namespace millrace::kernels::jpeg {
namespace {

std::size_t transposed(std::size_t at) {
  return at % kBlock * kBlock + at / kBlock;
}

// Arai, Agui and Nakajima's factor of frequency `k`.
double scale_of(std::size_t k) {
  return k == 0 ? 1 : std::numbers::sqrt2 * std::cos(static_cast<double>(k) * std::numbers::pi / 16);
}

std::int16_t saturated(int value) {
  return static_cast<std::int16_t>(std::clamp<int>(value, INT16_MIN, INT16_MAX));
}

struct Number {
  std::int16_t value;
  friend Number operator+(Number a, Number b) { return {saturated(a.value + b.value)}; }
  friend Number operator-(Number a, Number b) { return {saturated(a.value - b.value)}; }
  // Rounded.
  Number times(std::int16_t factor) const { return {static_cast<std::int16_t>((value * factor + (1 << 14)) >> 15)}; }
};

void transform_line(Number* in, std::ptrdiff_t step) {
  const auto x = [&](int i) -> Number& { return in[i * step]; };
  const Number sum04 = x(0) + x(4), difference04 = x(0) - x(4), sum26 = x(2) + x(6), difference26 = x(2) - x(6);
  const Number turned = difference26 + difference26.times(kHalfOctave) - sum26;
  const Number even[4] = {sum04 + sum26, difference04 + turned, difference04 - turned, sum04 - sum26};

  const Number sum53 = x(5) + x(3), difference53 = x(5) - x(3), sum17 = x(1) + x(7), difference17 = x(1) - x(7);
  const Number both = difference53 + difference17, z5 = both + both.times(kOddFactors[0]);
  const Number across = sum17 - sum53;
  Number odd[4];
  odd[0] = sum17 + sum53;
  odd[1] = z5 - (difference53 + difference53 + difference53.times(kOddFactors[2])) - odd[0];
  odd[2] = across + across.times(kHalfOctave) - odd[1];
  odd[3] = odd[2] + (difference17 + difference17.times(kOddFactors[1]) - z5);
  for (int i = 0; i < 3; ++i) {
    x(i) = even[i] + odd[i];
    x(7 - i) = even[i] - odd[i];
  }
  x(4) = even[3] + odd[3];
  x(3) = even[3] - odd[3];
}

// Transposed, so that rows come first.
void transform_block(const BlockJob& job) {
  Number block[kCoefficients];
  const FastFactors& factors = job.dequantiser->fast;
  for (std::size_t i = 0; i < kCoefficients; ++i) {
    const std::size_t at = transposed(kNatural[i]);
    const auto wide = static_cast<std::int16_t>(job.coefficients[i] * factors.steps[at]);
    block[at] = Number{wide}.times(factors.scales[at]);
  }
  block[0] = block[0] + Number{kFastMiddle};
  for (int i = 0; i < kBlock; ++i) transform_line(block + i, kBlock);
  for (int i = 0; i < kBlock; ++i) transform_line(block + i * kBlock, 1);
  for (int row = 0; row < kBlock; ++row) {
    for (int column = 0; column < kBlock; ++column)
      job.out[row * job.stride + column] =
          static_cast<std::uint8_t>(std::clamp(block[column * kBlock + row].value >> kFastShift, 0, 255));
  }
}

}  // namespace

// A coefficient is multiplied by a power of two that leaves an ordinary one 16 bits, and by the rest of its factor with
// a rounding shift by 15.
void add_fast_factors(const std::array<std::uint16_t, kCoefficients>& quant, Dequantiser& dequantiser) {
  constexpr int kMostStep = 14;
  double scales[kBlock];
  for (std::size_t k = 0; k < kBlock; ++k) scales[k] = scale_of(k);
  for (std::size_t i = 0; i < kCoefficients; ++i) {
    int step = 3;
    while (step < kMostStep && kMostInColumn << (step + 1) <= INT16_MAX * quant[i]) ++step;
    const double scale = scales[i / kBlock] * scales[i % kBlock] * quant[i] * (1 << (16 - step));
    const std::size_t at = transposed(i);
    dequantiser.fast.steps[at] = static_cast<std::int16_t>(1 << step);
    dequantiser.fast.scales[at] = static_cast<std::int16_t>(std::min<long>(std::lround(scale), INT16_MAX));
    dequantiser.fast.harmless[at] = dequantiser.harmless[i];
  }
}

bool transform_fast_scalar(const BlockJob* jobs, int count) {
  for (int i = 0; i < count; ++i) {
    if (!is_ordinary(jobs[i])) return false;
    transform_block(jobs[i]);
    std::memset(jobs[i].coefficients, 0, kCoefficients * sizeof(std::int16_t));
  }
  return true;
}

}  // namespace millrace::kernels::jpeg
