// The vertical pass and taking rows as they are, with 64 bytes a vector, for a file that has defined
// MILLRACE_ROWS_TARGET, MILLRACE_ROWS_INLINE and
//   kStartOfHigh     what the upper halves' sums begin with: finish_bytes() rounds what does not
//   first_products   of words and weights, with that
//   added_products   the same added to a sum
//   finish_bytes     four vectors of sums of 64 samples to 64 bytes
// Included once by each such file, in its anonymous namespace.
#pragma once

constexpr int kStep = 64;

// 64 samples of a row, of which those before `end` are touched; in the order that unpacking undoes.
MILLRACE_ROWS_INLINE __m512i load_for_unpacking(const std::uint8_t* row, int x, int end) {
  const int left = end - x;
  const __mmask64 mask = left >= kStep ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
  return _mm512_permutexvar_epi32(lane_order(), _mm512_maskz_loadu_epi8(mask, row + x));
}

MILLRACE_ROWS_TARGET void interleave_pair(const std::uint8_t* first, const std::uint8_t* second, int samples,
                                          std::uint8_t* pair) {
  const __m512i zero = _mm512_setzero_si512();
  for (int x = 0; x < samples; x += kStep) {
    const __m512i a = load_for_unpacking(first, x, samples), b = load_for_unpacking(second, x, samples);
    const __m512i low = _mm512_unpacklo_epi8(a, b), high = _mm512_unpackhi_epi8(a, b);
    std::uint8_t* const out = pair + 4 * static_cast<std::ptrdiff_t>(x);
    _mm512_storeu_si512(out, _mm512_unpacklo_epi8(low, zero));
    _mm512_storeu_si512(out + 64, _mm512_unpackhi_epi8(low, zero));
    _mm512_storeu_si512(out + 128, _mm512_unpacklo_epi8(high, zero));
    _mm512_storeu_si512(out + 192, _mm512_unpackhi_epi8(high, zero));
  }
}

void interleave(const std::uint8_t* const rows[kQuadRows], int samples, std::uint8_t* quad) {
  interleave_pair(rows[0], rows[1], samples, quad);
  interleave_pair(rows[2], rows[3], samples, quad + pair_bytes(samples));
}

MILLRACE_ROWS_INLINE __m512i broadcast_pair(const std::int16_t* pair) {
  std::int32_t value;
  std::memcpy(&value, pair, sizeof value);
  return _mm512_set1_epi32(value);
}

// The sums of sixteen samples of kPairs pairs.
template <int kPairs>
MILLRACE_ROWS_INLINE __m512i sum_of(const std::uint8_t* const* pairs, const __m512i* high, const __m512i* low,
                                    std::ptrdiff_t at) {
  __m512i words[kPairs];
  for (int p = 0; p < kPairs; ++p) words[p] = _mm512_load_si512(pairs[p] + at);
  __m512i sum = first_products(words[0], high[0]);
  for (int p = 1; p < kPairs; ++p) sum = added_products(sum, words[p], high[p]);
  sum = _mm512_slli_epi32(sum, kLowBits);
  for (int p = 0; p < kPairs; ++p) sum = added_products(sum, words[p], low[p]);
  return sum;
}

template <int kPairs, bool kClamps>
MILLRACE_ROWS_TARGET void filter_few(const PairWeights* weights, const PairRows& rows, int, int samples,
                                     std::uint8_t* out) {
  const std::uint8_t* pairs[kPairs];
  __m512i high[kPairs], low[kPairs];
  for (int p = 0; p < kPairs; ++p) {
    pairs[p] = rows[p];
    high[p] = broadcast_pair(weights[p].high);
    low[p] = broadcast_pair(weights[p].low);
  }
  int x = 0;
  for (; x + kStep / 2 < samples; x += kStep) {
    __m512i sums[4];
    for (int i = 0; i < 4; ++i) sums[i] = sum_of<kPairs>(pairs, high, low, 4 * static_cast<std::ptrdiff_t>(x) + 64 * i);
    _mm512_storeu_si512(out + x, finish_bytes<kClamps>(sums));
  }
  if (x >= samples) return;
  __m512i sums[4];
  for (int i = 0; i < 2; ++i)
    sums[i] = sums[i + 2] = sum_of<kPairs>(pairs, high, low, 4 * static_cast<std::ptrdiff_t>(x) + 64 * i);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + x), _mm512_castsi512_si256(finish_bytes<kClamps>(sums)));
}

template <bool kClamps>
MILLRACE_ROWS_TARGET void filter_many(const PairWeights* weights, const PairRows& rows, int count, int samples,
                                      std::uint8_t* out) {
  for (int x = 0; x < samples; x += kStep) {
    __m512i high[4], low[4];
    for (int i = 0; i < 4; ++i) high[i] = _mm512_set1_epi32(kStartOfHigh), low[i] = _mm512_setzero_si512();
    for (int p = 0; p < count; ++p) {
      const std::uint8_t* const in = rows[p] + 4 * static_cast<std::ptrdiff_t>(x);
      const __m512i high_weights = broadcast_pair(weights[p].high), low_weights = broadcast_pair(weights[p].low);
      for (int i = 0; i < 4; ++i) {
        const __m512i words = _mm512_load_si512(in + 64 * i);
        high[i] = added_products(high[i], words, high_weights);
        low[i] = added_products(low[i], words, low_weights);
      }
    }
    for (int i = 0; i < 4; ++i) high[i] = _mm512_add_epi32(_mm512_slli_epi32(high[i], kLowBits), low[i]);
    _mm512_storeu_si512(out + x, finish_bytes<kClamps>(high));
  }
}

using FilterRow = void (*)(const PairWeights*, const PairRows&, int, int, std::uint8_t*);
template <bool kClamps>
constexpr FilterRow kFew[] = {filter_few<1, kClamps>, filter_few<2, kClamps>, filter_few<3, kClamps>,
                              filter_few<4, kClamps>, filter_few<5, kClamps>, filter_few<6, kClamps>};

template <bool kClamps>
[[gnu::noinline]] void vertical_of_many(const PairWeights* weights, const PairRows& pairs, int count, int samples,
                                        std::uint8_t* out) {
  const FilterRow filter =
      count <= static_cast<int>(std::size(kFew<kClamps>)) ? kFew<kClamps>[count - 1] : filter_many<kClamps>;
  filter(weights, pairs, count, samples, out);
}

// Few pairs are told apart by comparing, many by a table.
template <bool kClamps>
void vertical_of(const PairWeights* weights, const PairRows& pairs, int count, int samples, std::uint8_t* out) {
  switch (count) {
    case 1:
      return filter_few<1, kClamps>(weights, pairs, count, samples, out);
    case 2:
      return filter_few<2, kClamps>(weights, pairs, count, samples, out);
    case 3:
      return filter_few<3, kClamps>(weights, pairs, count, samples, out);
    default:
      return vertical_of_many<kClamps>(weights, pairs, count, samples, out);
  }
}

void vertical(const AxisTable& rows, int y, const std::uint8_t* const* quads, int samples, std::uint8_t* out) {
  const PairRows pairs(rows, y, quads, samples);
  const int count = rows.row_steps[y].count;
  rows.clamps ? vertical_of<true>(pair_weights(rows, y), pairs, count, samples, out)
              : vertical_of<false>(pair_weights(rows, y), pairs, count, samples, out);
}
