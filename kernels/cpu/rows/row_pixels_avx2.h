// The horizontal pass with AVX2 pixel by pixel, for taps too far apart for windows, and how both passes of AVX2 sum.
// Internal to kernels/cpu.
//
// It takes one pixel of four rows at a time, from loads of 16 bytes a row. At the right end of a row these step back so
// that they end with the row. Pictures too narrow even for that go through the plain loop.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/rows/row_kernels.h"

#define MILLRACE_AVX2 __attribute__((target("avx2")))

namespace millrace::kernels {

// packed_for: kAvx2, or kScalar for too narrow ones. REQUIRES: one or three channels, else it is kScalar.
void pack_pixels_avx2(AxisTable& table);
void pixels_avx2(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows], std::uint8_t* quad);
void pixels_rows_avx2(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows],
                      std::uint8_t* const out[kQuadRows]);

MILLRACE_AVX2 inline __m256i broadcast_pair(const std::int16_t pair[2]) {
  std::int32_t value;
  std::memcpy(&value, pair, sizeof value);
  return _mm256_set1_epi32(value);
}

// The finished sum, of which kPrecisionBits are still to go.
MILLRACE_AVX2 inline __m256i joined(__m256i high, __m256i low) {
  return _mm256_add_epi32(_mm256_slli_epi32(high, kLowBits),
                          _mm256_add_epi32(low, _mm256_set1_epi32(1 << (kPrecisionBits - 1))));
}

MILLRACE_AVX2 inline __m256i value_of(__m256i sum) {
  return _mm256_srai_epi32(sum, kPrecisionBits);
}

template <int kPairs>
struct Halves {
  __m256i high[kPairs], low[kPairs];
};

template <int kPairs>
MILLRACE_AVX2 inline Halves<kPairs> weights_of(const PairWeights* pairs) {
  Halves<kPairs> weights;
  for (int p = 0; p < kPairs; ++p) {
    weights.high[p] = broadcast_pair(pairs[p].high);
    weights.low[p] = broadcast_pair(pairs[p].low);
  }
  return weights;
}

struct Sums {
  __m256i high, low;
};

}  // namespace millrace::kernels

#endif  // __x86_64__
