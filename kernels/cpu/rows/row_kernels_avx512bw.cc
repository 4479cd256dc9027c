// Resampling with AVX-512 BW. Without VNNI a product is a vpmaddwd and an add, and without VBMI bytes are shuffled
// within 128 bits: the horizontal pass goes by windows.
#include "kernels/cpu/rows/row_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>
#include <iterator>

#include "kernels/cpu/rows/row_pixels_avx2.h"
#include "kernels/cpu/rows/row_windows.h"

#define MILLRACE_ROWS_TARGET __attribute__((target("avx2,avx512f,avx512bw,avx512vl,avx512dq")))
#define MILLRACE_ROWS_INLINE MILLRACE_ROWS_TARGET inline __attribute__((always_inline))

namespace millrace::kernels {
namespace {

constexpr int kStartOfHigh = 0;

MILLRACE_ROWS_INLINE __m512i first_products(__m512i words, __m512i weights) {
  return _mm512_madd_epi16(words, weights);
}
MILLRACE_ROWS_INLINE __m512i added_products(__m512i sum, __m512i words, __m512i weights) {
  return _mm512_add_epi32(sum, _mm512_madd_epi16(words, weights));
}

// The dwords that unpacking within 128-bit lanes, or packing, leaves in this order come out (or go in) as 0, 1, 2, ...
MILLRACE_ROWS_INLINE __m512i lane_order() {
  return _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
}

// The values of two sums in the words of a dword, rounded: only bits 16 and up count for that. They may leave 0..255.
MILLRACE_ROWS_INLINE __m512i rounded(__m512i first, __m512i second) {
  const __m512i upper = _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_srli_epi32(first, 16), second);
  return _mm512_mulhrs_epi16(upper, _mm512_set1_epi16(1 << (15 + 16 - kPrecisionBits)));
}

// Four vectors of sums to bytes, vector by vector.
template <bool kClamps>
MILLRACE_ROWS_INLINE __m512i finish_bytes(const __m512i sums[4]) {
  const __m512i bytes = _mm512_packus_epi16(rounded(sums[0], sums[1]), rounded(sums[2], sums[3]));
  const __m128i turns = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
  return _mm512_permutexvar_epi32(lane_order(), _mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(turns)));
}

#include "kernels/cpu/rows/row_filter_loop.h"

// --- the horizontal pass, four windows a vector ---

using Vector = __m512i;
constexpr int kWindows = 4;

MILLRACE_ROWS_INLINE Vector load(const std::uint8_t* from) {
  return _mm512_load_si512(from);
}
MILLRACE_ROWS_INLINE __m128i load_16(const std::uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
MILLRACE_ROWS_INLINE Vector load_windows(const std::uint8_t* row, const AxisTable::Step* steps) {
  const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(row + steps[0].source)),
                                              load_16(row + steps[1].source), 1);
  const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(row + steps[2].source)),
                                               load_16(row + steps[3].source), 1);
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
MILLRACE_ROWS_INLINE Vector shuffled(Vector bytes, Vector index) {
  return _mm512_shuffle_epi8(bytes, index);
}
MILLRACE_ROWS_INLINE Vector added_bytes(Vector bytes, std::uint8_t value) {
  return _mm512_add_epi8(bytes, _mm512_set1_epi8(static_cast<char>(value)));
}
MILLRACE_ROWS_INLINE Vector products(Vector words, Vector weights) {
  return _mm512_madd_epi16(words, weights);
}
MILLRACE_ROWS_INLINE Vector added(Vector a, Vector b) {
  return _mm512_add_epi32(a, b);
}
MILLRACE_ROWS_INLINE Vector zeros() {
  return _mm512_setzero_si512();
}
MILLRACE_ROWS_INLINE Vector even_bytes(Vector bytes) {
  return _mm512_and_si512(bytes, _mm512_set1_epi16(0xFF));
}
MILLRACE_ROWS_INLINE Vector odd_bytes(Vector bytes) {
  return _mm512_srli_epi16(bytes, 8);
}
MILLRACE_ROWS_INLINE Vector byte_products(Vector bytes, Vector weights) {
  return _mm512_maddubs_epi16(bytes, weights);
}
// `low` with both words of `upper`, shifted left by kLowBits: minus 2^15 fits a word.
MILLRACE_ROWS_INLINE Vector with_upper(Vector low, Vector upper) {
  return _mm512_sub_epi32(low, _mm512_madd_epi16(upper, _mm512_set1_epi16(-(1 << kLowBits))));
}
MILLRACE_ROWS_INLINE Vector joined_halves(Vector high, Vector low) {
  return _mm512_add_epi32(_mm512_slli_epi32(high, kLowBits), low);
}

#include "kernels/cpu/rows/row_windows_loop.h"

template <bool kClamps>
struct QuadOutput {
  std::uint8_t* pairs[2];

  MILLRACE_ROWS_TARGET void take(int sample, const Vector sums[kQuadRows]) const {
    for (int p = 0; p < 2; ++p) {
      Vector words = rounded(sums[2 * p], sums[2 * p + 1]);
      if constexpr (kClamps)
        words = _mm512_min_epi16(_mm512_max_epi16(words, _mm512_setzero_si512()), _mm512_set1_epi16(255));
      _mm512_storeu_si512(pairs[p] + 4 * static_cast<std::ptrdiff_t>(sample), words);
    }
  }
};

struct RowsOutput {
  std::uint8_t* rows[kQuadRows];

  MILLRACE_ROWS_TARGET void take(int sample, const Vector sums[kQuadRows]) const {
    const Vector by_row = finish_bytes<true>(sums);
    store(rows[0] + sample, _mm512_castsi512_si128(by_row));
    store(rows[1] + sample, _mm512_extracti32x4_epi32(by_row, 1));
    store(rows[2] + sample, _mm512_extracti32x4_epi32(by_row, 2));
    store(rows[3] + sample, _mm512_extracti32x4_epi32(by_row, 3));
  }

 private:
  MILLRACE_ROWS_TARGET static void store(std::uint8_t* to, __m128i bytes) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
  }
};

void pack_columns(AxisTable& table) {
  table.packed_for = Target::kAvx512Bw;
  if (!pack_row_windows(4, table)) pack_pixels_avx2(table);
}

void horizontal(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows], std::uint8_t* quad) {
  if (columns.packed_for != Target::kAvx512Bw) return avx2_row_kernels().horizontal(columns, rows, quad);
  std::uint8_t* const second = quad + pair_bytes(columns.spec.count * columns.spec.channels);
  columns.clamps ? filter_windows(columns, rows, QuadOutput<true>{{quad, second}})
                 : filter_windows(columns, rows, QuadOutput<false>{{quad, second}});
}

void horizontal_rows(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows],
                     std::uint8_t* const out[kQuadRows]) {
  if (columns.packed_for != Target::kAvx512Bw) return avx2_row_kernels().horizontal_rows(columns, rows, out);
  filter_windows(columns, rows, RowsOutput{{out[0], out[1], out[2], out[3]}});
}

}  // namespace

const RowKernels& avx512bw_row_kernels() {
  static constexpr RowKernels kKernels{pack_columns, pack_pairs, horizontal, horizontal_rows, interleave, vertical};
  return kKernels;
}

}  // namespace millrace::kernels

#endif  // __x86_64__
