#include "kernels/cpu/rows/row_pixels_avx2.h"

#if defined(__x86_64__)

#include <algorithm>

namespace millrace::kernels {
namespace {

constexpr int kHalf = 1 << (kPrecisionBits - 1);
constexpr int kRgb = 3;  // channels

// How a pixel's taps are loaded: `loads` times 16 bytes, of which `taps` pixels are used. At the right end of a row
// they step back by what is not used: of RGB, four bytes. Five pixels fit, too, but leave only one byte.
struct Loads {
  int taps, loads, step_back;
};
// Whether the last of several loads of RGB has one pair of taps, and so has ten bytes to step back by. Those before it
// end within the row.
bool ends_with_pair(const AxisTable& table) {
  const int taps = table.weights.taps;
  return table.spec.channels == 3 && taps > 5 && (taps + 3) % 4 < 2;
}
Loads loads_of(const AxisTable& table) {
  const int taps = table.weights.taps, channels = table.spec.channels;
  if (channels == 3 && taps == 5) return {5, 1, 1};
  return {4, (taps + 3) / 4, channels == 3 ? 4 : 0};
}

void pack_pixel(AxisTable& table, int x, int position) {
  const int taps = table.weights.taps;
  auto* const pairs =
      reinterpret_cast<PairWeights*>(table.packed_bytes()) + static_cast<std::ptrdiff_t>(x) * table.pairs;
  for (int t = 0; t < taps; ++t) {
    const int tap = position + t;
    pack_weight(pairs[tap / 2], tap % 2, table.weights.weight[static_cast<std::size_t>(x) * taps + t]);
  }
}

MILLRACE_AVX2 inline __m256i two_rows(const std::uint8_t* first, const std::uint8_t* second) {
  const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(first));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), _mm_loadu_si128(reinterpret_cast<const __m128i*>(second)),
                                 1);
}

// Shuffles that take the taps of a pair, of every channel, as words, from a load whose pixels begin `skip` bytes into
// it.
MILLRACE_AVX2 inline __m256i tap_words(int pair, int skip) {
  alignas(16) std::int8_t index[16];
  for (int c = 0; c < 4; ++c) {
    for (int word = 0; word < 2; ++word) {
      const int byte = skip + (2 * pair + word) * kRgb + c;
      index[4 * c + 2 * word] = static_cast<std::int8_t>(c < kRgb && byte < 16 ? byte : -1);
      index[4 * c + 2 * word + 1] = -1;
    }
  }
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(index)));
}

// --- where the sums of a pixel go: rows 0 and 2 in `a`, 1 and 3 in `b`, one dword a channel. The stores of an RGB
// pixel are 4 samples long; the next pixel overwrites the last ---

// kClamps: sums may leave 0..255.
template <bool kClamps>
struct QuadOutput {
  std::uint8_t* pairs[2];

  MILLRACE_AVX2 void take(std::ptrdiff_t sample, __m256i a, __m256i b) const {
    const __m256i words = both(a, b);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(pairs[0] + 4 * sample), _mm256_castsi256_si128(words));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(pairs[1] + 4 * sample), _mm256_extracti128_si256(words, 1));
  }

 private:
  // Dwords of a value of `a` below and one of `b` above.
  MILLRACE_AVX2 static __m256i both(__m256i a, __m256i b) {
    if constexpr (!kClamps)
      return _mm256_blend_epi16(_mm256_srli_epi32(a, kPrecisionBits), _mm256_srli_epi32(b, kPrecisionBits - 16), 0xAA);
    const __m256i values = _mm256_packs_epi32(value_of(a), value_of(b));
    const __m256i words = _mm256_min_epi16(_mm256_max_epi16(values, _mm256_setzero_si256()), _mm256_set1_epi16(255));
    const __m128i turns = _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
    return _mm256_shuffle_epi8(words, _mm256_broadcastsi128_si256(turns));
  }
};

struct RowsOutput {
  std::uint8_t* rows[kQuadRows];

  MILLRACE_AVX2 void take(std::ptrdiff_t sample, __m256i a, __m256i b) const {
    const __m256i words = _mm256_packs_epi32(value_of(a), value_of(b));
    const __m256i bytes = _mm256_packus_epi16(words, words);
    const __m128i low = _mm256_castsi256_si128(bytes), high = _mm256_extracti128_si256(bytes, 1);
    store(rows[0] + sample, _mm_cvtsi128_si32(low));
    store(rows[1] + sample, _mm_extract_epi32(low, 1));
    store(rows[2] + sample, _mm_cvtsi128_si32(high));
    store(rows[3] + sample, _mm_extract_epi32(high, 1));
  }

 private:
  static void store(std::uint8_t* to, std::int32_t pixel) { std::memcpy(to, &pixel, sizeof pixel); }
};

// --- the pass ---

// The sums of one load a row, of two rows.
template <int kPairs>
MILLRACE_AVX2 inline Sums filter_load(__m256i load, const __m256i* words, const Halves<kPairs>& weights) {
  __m256i taps = _mm256_shuffle_epi8(load, words[0]);
  Sums sums{_mm256_madd_epi16(taps, weights.high[0]), _mm256_madd_epi16(taps, weights.low[0])};
  for (int p = 1; p < kPairs; ++p) {
    taps = _mm256_shuffle_epi8(load, words[p]);
    sums.high = _mm256_add_epi32(sums.high, _mm256_madd_epi16(taps, weights.high[p]));
    sums.low = _mm256_add_epi32(sums.low, _mm256_madd_epi16(taps, weights.low[p]));
  }
  return sums;
}

MILLRACE_AVX2 inline Sums added(Sums a, Sums b) {
  return {_mm256_add_epi32(a.high, b.high), _mm256_add_epi32(a.low, b.low)};
}

// Pixels first .. last - 1, of kPairs pairs a load. kOne: of one load. What a store of bytes might change, for all that
// a compiler knows, is copied first.
template <int kPairs, bool kOne, int kSkip, class Output>
MILLRACE_AVX2 void filter_pixels(const AxisTable& table, int first, int last, const std::uint8_t* const rows[kQuadRows],
                                 const Output& output) {
  __m256i words[kPairs];
  for (int p = 0; p < kPairs; ++p) words[p] = tap_words(p, kSkip);
  const std::uint8_t* const in[kQuadRows] = {rows[0], rows[1], rows[2], rows[3]};
  const Output out = output;
  const AxisTable::Step* const steps = table.steps.data();
  const int loads = kOne ? 1 : table.blocks;
  const PairWeights* pairs = pair_weights(table, first);
  for (int x = first; x < last; ++x) {
    std::ptrdiff_t at = steps[x].source - kSkip;
    const Halves<kPairs> weights = weights_of<kPairs>(pairs);
    Sums a = filter_load<kPairs>(two_rows(in[0] + at, in[2] + at), words, weights);
    Sums b = filter_load<kPairs>(two_rows(in[1] + at, in[3] + at), words, weights);
    pairs += kPairs;
    for (int load = 1; load < loads; ++load, pairs += kPairs) {
      at += 4 * kRgb;
      const Halves<kPairs> more = weights_of<kPairs>(pairs);
      a = added(a, filter_load<kPairs>(two_rows(in[0] + at, in[2] + at), words, more));
      b = added(b, filter_load<kPairs>(two_rows(in[1] + at, in[3] + at), words, more));
    }
    out.take(static_cast<std::ptrdiff_t>(x) * kRgb, joined(a.high, a.low), joined(b.high, b.low));
  }
}

// The same of RGB where the last of several loads has one pair. It alone steps back.
template <int kSkip, class Output>
MILLRACE_AVX2 void filter_to_pair(const AxisTable& table, int first, int last,
                                  const std::uint8_t* const rows[kQuadRows], const Output& output) {
  const __m256i words[2] = {tap_words(0, 0), tap_words(1, 0)}, end = tap_words(0, kSkip);
  const std::uint8_t* const in[kQuadRows] = {rows[0], rows[1], rows[2], rows[3]};
  const Output out = output;
  const AxisTable::Step* const steps = table.steps.data();
  const int whole = table.blocks - 1;
  const PairWeights* pairs = pair_weights(table, first);
  for (int x = first; x < last; ++x) {
    std::ptrdiff_t at = steps[x].source;
    Halves<2> weights = weights_of<2>(pairs);
    Sums a = filter_load<2>(two_rows(in[0] + at, in[2] + at), words, weights);
    Sums b = filter_load<2>(two_rows(in[1] + at, in[3] + at), words, weights);
    pairs += 2;
    at += 12;
    for (int load = 1; load < whole; ++load, pairs += 2, at += 12) {
      weights = weights_of<2>(pairs);
      a = added(a, filter_load<2>(two_rows(in[0] + at, in[2] + at), words, weights));
      b = added(b, filter_load<2>(two_rows(in[1] + at, in[3] + at), words, weights));
    }
    at -= kSkip;
    const Halves<1> rest = weights_of<1>(pairs++);
    a = added(a, filter_load<1>(two_rows(in[0] + at, in[2] + at), &end, rest));
    b = added(b, filter_load<1>(two_rows(in[1] + at, in[3] + at), &end, rest));
    out.take(std::ptrdiff_t{3} * x, joined(a.high, a.low), joined(b.high, b.low));
  }
}

MILLRACE_AVX2 inline __m128i four_rows(const std::uint8_t* const rows[kQuadRows], std::ptrdiff_t at) {
  std::int32_t taps[kQuadRows];
  for (int r = 0; r < kQuadRows; ++r) std::memcpy(&taps[r], rows[r] + at, sizeof taps[r]);
  return _mm_setr_epi32(taps[0], taps[1], taps[2], taps[3]);
}

// One channel: the four lanes are the four rows, high sums below, low sums above.
MILLRACE_AVX2 inline __m128i filter_grey(const PairWeights* pairs, int loads, const std::uint8_t* const rows[kQuadRows],
                                         std::ptrdiff_t at) {
  __m256i sum = _mm256_setr_epi32(0, 0, 0, 0, kHalf, kHalf, kHalf, kHalf);
  for (int load = 0; load < loads; ++load, pairs += 2, at += 4) {
    const __m256i words =
        _mm256_cvtepu8_epi16(four_rows(rows, at));  // rows 0 and 1 below, 2 and 3 above, four taps each
    const __m256i ordered = _mm256_permutevar8x32_epi32(words, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
    for (int p = 0; p < 2; ++p) {
      const __m256i taps = p == 0 ? _mm256_permute4x64_epi64(ordered, 0x44) : _mm256_permute4x64_epi64(ordered, 0xEE);
      const __m256i weights = _mm256_blend_epi32(broadcast_pair(pairs[p].high), broadcast_pair(pairs[p].low), 0xF0);
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(taps, weights));
    }
  }
  const __m128i high = _mm_slli_epi32(_mm256_castsi256_si128(sum), kLowBits);
  return _mm_srai_epi32(_mm_add_epi32(high, _mm256_extracti128_si256(sum, 1)), kPrecisionBits);
}

template <bool kClamps>
MILLRACE_AVX2 void take_grey(const QuadOutput<kClamps>& out, int x, __m128i values) {
  const __m128i words = _mm_packs_epi32(values, values);
  const __m128i clamped = _mm_min_epi16(_mm_max_epi16(words, _mm_setzero_si128()), _mm_set1_epi16(255));
  for (int p = 0; p < 2; ++p) {
    const std::int32_t pair = p == 0 ? _mm_cvtsi128_si32(clamped) : _mm_extract_epi32(clamped, 1);
    std::memcpy(out.pairs[p] + 4 * static_cast<std::ptrdiff_t>(x), &pair, sizeof pair);
  }
}

MILLRACE_AVX2 void take_grey(const RowsOutput& out, int x, __m128i values) {
  const __m128i words = _mm_packs_epi32(values, values);
  const auto bytes = static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm_packus_epi16(words, words)));
  for (int r = 0; r < kQuadRows; ++r) out.rows[r][x] = static_cast<std::uint8_t>(bytes >> (8 * r));
}

template <class Output>
MILLRACE_AVX2 void filter_grey_row(const AxisTable& table, const std::uint8_t* const rows[kQuadRows],
                                   const Output& out) {
  for (int x = 0; x < table.spec.count; ++x)
    take_grey(out, x, filter_grey(pair_weights(table, x), table.blocks, rows, table.steps[x].source));
}

template <int kPairs, bool kOne, int kSkip, class Output>
void filter_rgb(const AxisTable& table, const std::uint8_t* const rows[kQuadRows], const Output& out) {
  filter_pixels<kPairs, kOne, 0>(table, 0, table.plain_steps, rows, out);
  filter_pixels<kPairs, kOne, kSkip>(table, table.plain_steps, table.spec.count, rows, out);
}

template <class Output>
void filter(const AxisTable& table, const std::uint8_t* const rows[kQuadRows], const Output& out) {
  if (table.spec.channels == 1) return filter_grey_row(table, rows, out);
  if (table.blocks == 1 && table.pairs == 3) return filter_rgb<3, true, 1>(table, rows, out);
  if (ends_with_pair(table)) {
    filter_to_pair<0>(table, 0, table.plain_steps, rows, out);
    return filter_to_pair<10>(table, table.plain_steps, table.spec.count, rows, out);
  }
  filter_rgb<2, false, 4>(table, rows, out);
}

}  // namespace

void pack_pixels_avx2(AxisTable& table) {
  const int channels = table.spec.channels;
  const Loads loads = loads_of(table);
  const int load = channels == 1 ? 4 : 16;
  const int span = loads.taps * loads.loads - (ends_with_pair(table) ? 2 : 0), last_start = table.spec.in - span;
  // From this pixel on a load would leave the row.
  const int stepping = (table.spec.in * channels - load + channels) / channels - loads.taps * (loads.loads - 1);
  const bool wide_enough = channels != 4 && last_start >= 0 && stepping * channels >= loads.step_back;
  table.packed_for = wide_enough ? Target::kAvx2 : Target::kScalar;
  if (!wide_enough) return;
  table.blocks = loads.loads;
  table.pairs = (span + 1) / 2;
  const std::size_t bytes = static_cast<std::size_t>(table.spec.count) * table.pairs * sizeof(PairWeights);
  table.lines.assign((bytes + sizeof(Line) - 1) / sizeof(Line), Line{});
  table.steps.clear();
  table.plain_steps = 0;
  for (int x = 0; x < table.spec.count; ++x) {
    const int start = std::min(table.weights.start[x], last_start);
    table.steps.push_back({start * channels, 0});
    pack_pixel(table, x, table.weights.start[x] - start);
    if ((start + loads.taps * (loads.loads - 1)) * channels + load <= table.spec.in * channels)
      table.plain_steps = x + 1;
  }
}

void pixels_avx2(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows], std::uint8_t* quad) {
  std::uint8_t* const second = quad + pair_bytes(columns.spec.count * columns.spec.channels);
  columns.clamps ? filter(columns, rows, QuadOutput<true>{{quad, second}})
                 : filter(columns, rows, QuadOutput<false>{{quad, second}});
}

void pixels_rows_avx2(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows],
                      std::uint8_t* const out[kQuadRows]) {
  filter(columns, rows, RowsOutput{{out[0], out[1], out[2], out[3]}});
}

}  // namespace millrace::kernels

#endif  // __x86_64__
