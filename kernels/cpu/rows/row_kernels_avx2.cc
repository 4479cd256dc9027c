// Resampling with AVX2. A weight of 24 bits is split into two words (PairWeights), so that vpmaddwd sums two taps of
// eight outputs for each half without overflow; the two sums meet in one shift and one add. Exact: every step is modulo
// 2^32, as the definition's is. The horizontal pass goes by windows, or pixel by pixel.
#include "kernels/cpu/rows/row_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/cpu/rows/row_pixels_avx2.h"
#include "kernels/cpu/rows/row_windows.h"

namespace millrace::kernels {
namespace {

MILLRACE_AVX2 int interleave_pair(const std::uint8_t* first, const std::uint8_t* second, int samples,
                                  std::uint8_t* pair) {
  const __m128i zero = _mm_setzero_si128();
  int x = 0;
  for (; x + 16 <= samples; x += 16) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(first + x));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(second + x));
    const __m128i low = _mm_unpacklo_epi8(a, b), high = _mm_unpackhi_epi8(a, b);
    auto* const out = reinterpret_cast<__m128i*>(pair + 4 * static_cast<std::ptrdiff_t>(x));
    _mm_storeu_si128(out, _mm_unpacklo_epi8(low, zero));
    _mm_storeu_si128(out + 1, _mm_unpackhi_epi8(low, zero));
    _mm_storeu_si128(out + 2, _mm_unpacklo_epi8(high, zero));
    _mm_storeu_si128(out + 3, _mm_unpackhi_epi8(high, zero));
  }
  return x;
}

void interleave(const std::uint8_t* const rows[kQuadRows], int samples, std::uint8_t* quad) {
  interleave_pair(rows[0], rows[1], samples, quad);
  const int done = interleave_pair(rows[2], rows[3], samples, quad + pair_bytes(samples));
  plain_interleave(rows, done, samples, quad);
}

// --- the horizontal pass ---

void pack_columns(AxisTable& table) {
  table.packed_for = Target::kAvx2;
  if (!pack_row_windows(2, table)) pack_pixels_avx2(table);
}

void horizontal(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows], std::uint8_t* quad) {
  if (columns.packed_for == Target::kScalar) return plain_horizontal(columns, rows, quad);
  columns.windows > 0 ? windows_avx2(columns, rows, quad) : pixels_avx2(columns, rows, quad);
}

void horizontal_rows(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows],
                     std::uint8_t* const out[kQuadRows]) {
  if (columns.packed_for == Target::kScalar) return plain_horizontal_rows(columns, rows, out);
  columns.windows > 0 ? windows_rows_avx2(columns, rows, out) : pixels_rows_avx2(columns, rows, out);
}

// --- the vertical pass ---

// Values of 32 samples, eight a vector, to bytes.
MILLRACE_AVX2 inline void store_bytes(const __m256i values[4], std::uint8_t* out) {
  const __m256i first = _mm256_packs_epi32(values[0], values[1]), second = _mm256_packs_epi32(values[2], values[3]);
  const __m256i bytes =
      _mm256_permutevar8x32_epi32(_mm256_packus_epi16(first, second), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), bytes);
}

// Eight samples after the other, so that few sums wait in registers.
template <int kPairs>
MILLRACE_AVX2 void filter_columns(const PairWeights* weights, const PairRows& rows, int samples, std::uint8_t* out) {
  const std::uint8_t* in[kPairs];
  for (int p = 0; p < kPairs; ++p) in[p] = rows[p];
  const Halves<kPairs> known = weights_of<kPairs>(weights);
  for (std::ptrdiff_t x = 0; x < samples; x += 32) {
    __m256i values[4];
    for (int i = 0; i < 4; ++i) {
      __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in[0] + 4 * x) + i);
      Sums sums{_mm256_madd_epi16(words, known.high[0]), _mm256_madd_epi16(words, known.low[0])};
      for (int p = 1; p < kPairs; ++p) {
        words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in[p] + 4 * x) + i);
        sums.high = _mm256_add_epi32(sums.high, _mm256_madd_epi16(words, known.high[p]));
        sums.low = _mm256_add_epi32(sums.low, _mm256_madd_epi16(words, known.low[p]));
      }
      values[i] = value_of(joined(sums.high, sums.low));
    }
    store_bytes(values, out + x);
  }
}

MILLRACE_AVX2 void filter_many_columns(const PairWeights* weights, const PairRows& rows, int pairs, int samples,
                                       std::uint8_t* out) {
  for (int x = 0; x < samples; x += 32) {
    __m256i high[4], low[4];
    for (int i = 0; i < 4; ++i) high[i] = low[i] = _mm256_setzero_si256();
    for (int p = 0; p < pairs; ++p) {
      const auto* const in = reinterpret_cast<const __m256i*>(rows[p] + 4 * static_cast<std::ptrdiff_t>(x));
      const __m256i high_weights = broadcast_pair(weights[p].high), low_weights = broadcast_pair(weights[p].low);
      for (int i = 0; i < 4; ++i) {
        const __m256i words = _mm256_loadu_si256(in + i);
        high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(words, high_weights));
        low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(words, low_weights));
      }
    }
    for (int i = 0; i < 4; ++i) high[i] = value_of(joined(high[i], low[i]));
    store_bytes(high, out + x);
  }
}

[[gnu::noinline]] void vertical_of_many(const PairWeights* weights, const PairRows& pairs, int count, int samples,
                                        std::uint8_t* out) {
  switch (count) {
    case 4:
      return filter_columns<4>(weights, pairs, samples, out);
    case 5:
      return filter_columns<5>(weights, pairs, samples, out);
    case 6:
      return filter_columns<6>(weights, pairs, samples, out);
    default:
      return filter_many_columns(weights, pairs, count, samples, out);
  }
}

// Apart from many pairs, so that few are told apart by comparing: a jump by a table costs 3 % of such a row.
void vertical(const AxisTable& rows, int y, const std::uint8_t* const* quads, int samples, std::uint8_t* out) {
  const PairRows pairs(rows, y, quads, samples);
  const int count = rows.row_steps[y].count;
  switch (count) {
    case 1:
      return filter_columns<1>(pair_weights(rows, y), pairs, samples, out);
    case 2:
      return filter_columns<2>(pair_weights(rows, y), pairs, samples, out);
    case 3:
      return filter_columns<3>(pair_weights(rows, y), pairs, samples, out);
    default:
      return vertical_of_many(pair_weights(rows, y), pairs, count, samples, out);
  }
}

}  // namespace

const RowKernels& avx2_row_kernels() {
  static constexpr RowKernels kKernels{pack_columns, pack_pairs, horizontal, horizontal_rows, interleave, vertical};
  return kKernels;
}

}  // namespace millrace::kernels

#endif  // __x86_64__
