// Dequantisation and inverse DCT, bit-equal to libjpeg-turbo's accurate integer one (islow: Loeffler, Ligtenberg and
// Moschytz, 12 multiplications, ICASSP 1989; 13-bit constants, two bits kept between the passes).
//
// libjpeg's own implementations differ from each other where numbers leave 16 bits between the passes, which no image
// that was once pixels reaches. Blocks that might are not done here: the whole image is left to libjpeg-turbo.
// Thread-safe: plain functions over the caller's memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/base/target.h"
#include "kernels/jpeg/header.h"

namespace millrace::kernels::jpeg {

// Those of `fast` (fast_dct.h), transposed: a coefficient is multiplied by `steps`, then by `scales` / 2^15.
struct FastFactors {
  alignas(64) std::array<std::int16_t, kCoefficients> steps;
  alignas(64) std::array<std::int16_t, kCoefficients> scales;
  alignas(64) std::array<std::int16_t, kCoefficients> harmless;
};

// A component's factors, in natural order, and how large coefficients may be that need no closer look.
struct Dequantiser {
  alignas(64) std::array<std::int16_t, kCoefficients> factors;
  alignas(64) std::array<std::int16_t, kCoefficients> harmless;
  FastFactors fast;  // add_fast_factors()
};
// REQUIRES: no value is 0.
Dequantiser make_dequantiser(const std::array<std::uint16_t, kCoefficients>& quant);

// A block to transform: 64 coefficients in zig-zag order, aligned to 64 bytes; they are zeroed. 8 x 8 samples go to
// `out`.
struct BlockJob {
  std::int16_t* coefficients;
  const Dequantiser* dequantiser;
  std::uint8_t* out;
  std::ptrdiff_t stride;
};

// Which inverse DCT: islow, or that of `fast`.
enum class Precision : std::uint8_t { kExact, kFast };

struct InverseDct {
  // False: a block is beyond what can be equal everywhere; the samples mean nothing then, and blocks may be left as
  // they are.
  bool (*transform)(const BlockJob* jobs, int count);
  // The one of `fast`.
  bool (*transform_fast)(const BlockJob* jobs, int count);
};

const InverseDct& inverse_dct(Target target);
const InverseDct& scalar_inverse_dct();
#if defined(__x86_64__)
const InverseDct& avx2_inverse_dct();
const InverseDct& avx512bw_inverse_dct();
const InverseDct& avx512_inverse_dct();
#endif

// The closer look: whether every column's magnitudes add up to what stays inside 16 bits in all implementations.
bool is_ordinary(const BlockJob& job);

}  // namespace millrace::kernels::jpeg
