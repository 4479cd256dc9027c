// The horizontal pass by windows with AVX2, two of them a vector.
#include "kernels/cpu/rows/row_windows.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define MILLRACE_ROWS_TARGET __attribute__((target("avx2")))
#define MILLRACE_ROWS_INLINE MILLRACE_ROWS_TARGET inline __attribute__((always_inline))

namespace millrace::kernels {
namespace {

using Vector = __m256i;
constexpr int kWindows = 2;

MILLRACE_ROWS_INLINE Vector load(const std::uint8_t* from) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
}
MILLRACE_ROWS_INLINE Vector load_windows(const std::uint8_t* row, const AxisTable::Step* steps) {
  const auto* const low = reinterpret_cast<const __m128i*>(row + steps[0].source);
  const auto* const high = reinterpret_cast<const __m128i*>(row + steps[1].source);
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)), _mm_loadu_si128(high), 1);
}
MILLRACE_ROWS_INLINE Vector shuffled(Vector bytes, Vector index) {
  return _mm256_shuffle_epi8(bytes, index);
}
MILLRACE_ROWS_INLINE Vector added_bytes(Vector bytes, std::uint8_t value) {
  return _mm256_add_epi8(bytes, _mm256_set1_epi8(static_cast<char>(value)));
}
MILLRACE_ROWS_INLINE Vector products(Vector words, Vector weights) {
  return _mm256_madd_epi16(words, weights);
}
MILLRACE_ROWS_INLINE Vector added(Vector a, Vector b) {
  return _mm256_add_epi32(a, b);
}
MILLRACE_ROWS_INLINE Vector zeros() {
  return _mm256_setzero_si256();
}
MILLRACE_ROWS_INLINE Vector even_bytes(Vector bytes) {
  return _mm256_and_si256(bytes, _mm256_set1_epi16(0xFF));
}
MILLRACE_ROWS_INLINE Vector odd_bytes(Vector bytes) {
  return _mm256_srli_epi16(bytes, 8);
}
MILLRACE_ROWS_INLINE Vector byte_products(Vector bytes, Vector weights) {
  return _mm256_maddubs_epi16(bytes, weights);
}
// `low` with both words of `upper`, shifted left by kLowBits: minus 2^15 fits a word.
MILLRACE_ROWS_INLINE Vector with_upper(Vector low, Vector upper) {
  return _mm256_sub_epi32(low, _mm256_madd_epi16(upper, _mm256_set1_epi16(-(1 << kLowBits))));
}
MILLRACE_ROWS_INLINE Vector joined_halves(Vector high, Vector low) {
  return _mm256_add_epi32(_mm256_slli_epi32(high, kLowBits), low);
}

#include "kernels/cpu/rows/row_windows_loop.h"

// The values of two sums in the words of a dword, rounded: only bits 16 and up count for that. They may leave 0..255.
MILLRACE_ROWS_INLINE Vector rounded(Vector first, Vector second) {
  const Vector upper = _mm256_blend_epi16(_mm256_srli_epi32(first, 16), second, 0xAA);
  return _mm256_mulhrs_epi16(upper, _mm256_set1_epi16(1 << (15 + 16 - kPrecisionBits)));
}

template <bool kClamps>
struct QuadOutput {
  std::uint8_t* pairs[2];

  MILLRACE_ROWS_TARGET void take(int sample, const Vector sums[kQuadRows]) const {
    for (int p = 0; p < 2; ++p) {
      Vector words = rounded(sums[2 * p], sums[2 * p + 1]);
      if constexpr (kClamps)
        words = _mm256_min_epi16(_mm256_max_epi16(words, _mm256_setzero_si256()), _mm256_set1_epi16(255));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(pairs[p] + 4 * static_cast<std::ptrdiff_t>(sample)), words);
    }
  }
};

struct RowsOutput {
  std::uint8_t* rows[kQuadRows];

  MILLRACE_ROWS_TARGET void take(int sample, const Vector sums[kQuadRows]) const {
    const Vector bytes = _mm256_packus_epi16(rounded(sums[0], sums[1]), rounded(sums[2], sums[3]));
    const __m128i turns = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    const Vector by_row = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(turns)),
                                                      _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    const __m128i low = _mm256_castsi256_si128(by_row), high = _mm256_extracti128_si256(by_row, 1);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(rows[0] + sample), low);
    _mm_storeh_pd(reinterpret_cast<double*>(rows[1] + sample), _mm_castsi128_pd(low));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(rows[2] + sample), high);
    _mm_storeh_pd(reinterpret_cast<double*>(rows[3] + sample), _mm_castsi128_pd(high));
  }
};

}  // namespace

void windows_avx2(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows], std::uint8_t* quad) {
  std::uint8_t* const second = quad + pair_bytes(columns.spec.count * columns.spec.channels);
  columns.clamps ? filter_windows(columns, rows, QuadOutput<true>{{quad, second}})
                 : filter_windows(columns, rows, QuadOutput<false>{{quad, second}});
}

void windows_rows_avx2(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows],
                       std::uint8_t* const out[kQuadRows]) {
  filter_windows(columns, rows, RowsOutput{{out[0], out[1], out[2], out[3]}});
}

}  // namespace millrace::kernels

#endif  // __x86_64__
