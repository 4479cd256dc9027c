// The horizontal pass with AVX-512, for row_kernels_avx512.cc, and what both passes end with. Internal to kernels/cpu.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstdint>

#include "kernels/cpu/rows/row_kernels.h"

#define MILLRACE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni")))
#define MILLRACE_AVX512_INLINE MILLRACE_AVX512 inline __attribute__((always_inline))

namespace millrace::kernels {

void pack_columns_avx512(AxisTable& table);
void horizontal_avx512(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows], std::uint8_t* quad);
void horizontal_rows_avx512(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows],
                            std::uint8_t* const out[kQuadRows]);

// Bits 22 to 29 of either dword of a qword, for each of its bytes: the value of a sum that needs no clamping.
MILLRACE_AVX512_INLINE __m512i value_bits() {
  return _mm512_set1_epi64(static_cast<long long>(0x3636363616161616));
}
static_assert(kPrecisionBits == 0x16 && kPrecisionBits + 32 == 0x36);

// Byte r of lane i is the value of lane i of sums[r].
MILLRACE_AVX512_INLINE __m512i values_by_lane(const __m512i sums[4]) {
  __m512i bytes = _mm512_srli_epi32(sums[0], kPrecisionBits);
  bytes = _mm512_mask_multishift_epi64_epi8(bytes, 0x2222222222222222, value_bits(), sums[1]);
  bytes = _mm512_mask_multishift_epi64_epi8(bytes, 0x4444444444444444, value_bits(), sums[2]);
  return _mm512_mask_multishift_epi64_epi8(bytes, 0x8888888888888888, value_bits(), sums[3]);
}

// From lanes of four bytes to four times sixteen bytes.
MILLRACE_AVX512_INLINE __m512i transposed_bytes() {
  alignas(64) static constexpr std::uint8_t kIndices[64] = {
      0,  4,  8,  12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 1,  5,  9,  13, 17, 21,
      25, 29, 33, 37, 41, 45, 49, 53, 57, 61, 2,  6,  10, 14, 18, 22, 26, 30, 34, 38, 42, 46,
      50, 54, 58, 62, 3,  7,  11, 15, 19, 23, 27, 31, 35, 39, 43, 47, 51, 55, 59, 63};
  return _mm512_load_si512(kIndices);
}

}  // namespace millrace::kernels

#endif  // __x86_64__
