// The plane kernels with AVX2, 32 samples at a time.
#include "kernels/cpu/plane/plane_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#include "kernels/cpu/jpeg/rows.h"

#define MILLRACE_AVX2 __attribute__((target("avx2")))
#define MILLRACE_AVX2_INLINE MILLRACE_AVX2 inline __attribute__((always_inline))

namespace millrace::kernels {
namespace {

constexpr int kStep = 32;
constexpr std::int32_t kWideHalf = 1 << (kWideBits - 1), kNarrowHalf = 1 << (kNarrowBits - 1);
constexpr WindowShape kShape{4, 16, 2};

MILLRACE_AVX2_INLINE __m256i load(const std::uint8_t* in) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
}
MILLRACE_AVX2_INLINE void store(std::uint8_t* out, __m256i value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), value);
}

// --- the vertical pass ---

// Words of both rows' samples, for both weights: of the even samples and of the odd ones.
MILLRACE_AVX2_INLINE void add_words(__m256i pairs, __m256i weights, __m256i sums[2]) {
  const __m256i even = _mm256_and_si256(pairs, _mm256_set1_epi16(0xFF)), odd = _mm256_srli_epi16(pairs, 8);
  sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(even, weights));
  sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(odd, weights));
}

// A pair of rows' 32 samples times both weights, added to the sums; in the order that packing within 128-bit lanes
// undoes.
MILLRACE_AVX2_INLINE void add_pair(const std::uint8_t* first, const std::uint8_t* second, __m256i weights,
                                   __m256i sums[4]) {
  const __m256i a = load(first), b = load(second);
  add_words(_mm256_unpacklo_epi16(a, b), weights, sums);
  add_words(_mm256_unpackhi_epi16(a, b), weights, sums + 2);
}

MILLRACE_AVX2_INLINE __m256i pair_of(const std::int16_t* weights) {
  std::int32_t pair;
  std::memcpy(&pair, weights, sizeof pair);
  return _mm256_set1_epi32(pair);
}

// Values of even and of odd samples to words in their order.
MILLRACE_AVX2_INLINE __m256i finished_words(const __m256i sums[2]) {
  return _mm256_blend_epi16(_mm256_srli_epi32(sums[0], kWideBits), _mm256_slli_epi32(sums[1], 16 - kWideBits), 0xAA);
}

MILLRACE_AVX2_INLINE __m256i finish(const __m256i sums[4]) {
  return _mm256_packus_epi16(finished_words(sums), finished_words(sums + 2));
}

template <int kPairs>
MILLRACE_AVX2 void vertical_pairs(const std::uint8_t* const* rows, const std::int16_t* weights, int samples,
                                  std::uint8_t* out) {
  __m256i pairs[kPairs];
  for (int p = 0; p < kPairs; ++p) pairs[p] = pair_of(weights + 2 * p);
  for (int x = 0; x < samples; x += kStep) {
    __m256i sums[4];
    for (__m256i& sum : sums) sum = _mm256_set1_epi32(kWideHalf);
    for (int p = 0; p < kPairs; ++p) add_pair(rows[2 * p] + x, rows[2 * p + 1] + x, pairs[p], sums);
    store(out + x, finish(sums));
  }
}

MILLRACE_AVX2 void vertical_many(const std::uint8_t* const* rows, const std::int16_t* weights, int taps, int samples,
                                 std::uint8_t* out) {
  for (int x = 0; x < samples; x += kStep) {
    __m256i sums[4];
    for (__m256i& sum : sums) sum = _mm256_set1_epi32(kWideHalf);
    for (int t = 0; t < taps; t += 2) add_pair(rows[t] + x, rows[t + 1] + x, pair_of(weights + t), sums);
    store(out + x, finish(sums));
  }
}

void vertical(const std::uint8_t* const* rows, const std::int16_t* weights, int taps, int samples, std::uint8_t* out) {
  switch (taps) {
    case 2:
      return vertical_pairs<1>(rows, weights, samples, out);
    case 4:
      return vertical_pairs<2>(rows, weights, samples, out);
    default:
      return vertical_many(rows, weights, taps, samples, out);
  }
}

// Two rows' samples byte by byte, times both weights. No sum leaves 16 bits: all weights are positive and add up to
// 128.
MILLRACE_AVX2_INLINE void add_narrow_pair(const std::uint8_t* first, const std::uint8_t* second, __m256i weights,
                                          __m256i sums[2]) {
  const __m256i a = load(first), b = load(second);
  sums[0] = _mm256_add_epi16(sums[0], _mm256_maddubs_epi16(_mm256_unpacklo_epi8(a, b), weights));
  sums[1] = _mm256_add_epi16(sums[1], _mm256_maddubs_epi16(_mm256_unpackhi_epi8(a, b), weights));
}

MILLRACE_AVX2_INLINE __m256i narrow_pair_of(const std::int16_t* weights) {
  return _mm256_set1_epi16(static_cast<std::int16_t>(weights[0] | weights[1] * 256));
}

// kPairs 0: any number.
template <int kPairs>
MILLRACE_AVX2 void vertical_narrow_pairs(const std::uint8_t* const* rows, const std::int16_t* weights, int taps,
                                         int samples, std::uint8_t* out) {
  constexpr int kKnown = kPairs > 0 ? kPairs : 1;
  __m256i known[kKnown];
  for (int p = 0; p < kKnown; ++p) known[p] = narrow_pair_of(weights + 2 * p);
  const int pairs = kPairs > 0 ? kPairs : taps / 2;
  for (int x = 0; x < samples; x += kStep) {
    __m256i sums[2] = {_mm256_set1_epi16(kNarrowHalf), _mm256_set1_epi16(kNarrowHalf)};
    for (int p = 0; p < pairs; ++p) {
      const __m256i both = kPairs > 0 ? known[p % kKnown] : narrow_pair_of(weights + 2 * p);
      add_narrow_pair(rows[2 * p] + x, rows[2 * p + 1] + x, both, sums);
    }
    const __m256i low = _mm256_srli_epi16(sums[0], kNarrowBits), high = _mm256_srli_epi16(sums[1], kNarrowBits);
    store(out + x, _mm256_packus_epi16(low, high));
  }
}

void vertical_narrow(const std::uint8_t* const* rows, const std::int16_t* weights, int taps, int samples,
                     std::uint8_t* out) {
  switch (taps) {
    case 2:
      return vertical_narrow_pairs<1>(rows, weights, taps, samples, out);
    case 4:
      return vertical_narrow_pairs<2>(rows, weights, taps, samples, out);
    case 6:
      return vertical_narrow_pairs<3>(rows, weights, taps, samples, out);
    default:
      return vertical_narrow_pairs<0>(rows, weights, taps, samples, out);
  }
}

// --- the horizontal pass ---

MILLRACE_AVX2_INLINE __m256i load_two(const std::uint8_t* low, const std::uint8_t* high) {
  const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(low));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(first), _mm_loadu_si128(reinterpret_cast<const __m128i*>(high)),
                                 1);
}

// The sums of two windows' outputs. No sum of two products leaves 16 bits: narrow weights are positive and
// add up to 128; of wide ones the upper parts of neighbours add up to less than 128, the lower parts are at most 64.
template <int kBits, int kBlocks>
MILLRACE_AVX2_INLINE __m256i filter_two(const std::uint8_t* packed, const PlaneAxis& axis, const std::uint8_t* low,
                                        const std::uint8_t* high) {
  const __m256i indices = load(packed);
  const __m256i times_128 = _mm256_set1_epi16(128), ones = _mm256_set1_epi16(1);
  __m256i sum = _mm256_setzero_si256();
  const int blocks = kBlocks > 0 ? kBlocks : axis.blocks;
  for (int b = 0; b < blocks; ++b, low += 4 * axis.channels, high += 4 * axis.channels) {
    const __m256i samples = _mm256_shuffle_epi8(load_two(low, high), indices);
    if constexpr (kBits != kNarrowBits) {
      const __m256i upper = _mm256_maddubs_epi16(samples, load(packed += 32));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(upper, times_128));
    }
    const __m256i products = _mm256_maddubs_epi16(samples, load(packed += 32));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(products, ones));
  }
  return sum;
}

// Rounded and shifted, as words; narrow sums are words with the rounding, too.
template <int kBits>
MILLRACE_AVX2_INLINE __m256i finished_words(__m256i first, __m256i second) {
  if constexpr (kBits == kNarrowBits)
    return _mm256_srli_epi16(_mm256_add_epi16(_mm256_packs_epi32(first, second), _mm256_set1_epi16(kNarrowHalf)),
                             kBits);
  const __m256i half = _mm256_set1_epi32(1 << (kBits - 1));
  return _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(first, half), kBits),
                            _mm256_srai_epi32(_mm256_add_epi32(second, half), kBits));
}

MILLRACE_AVX2_INLINE void store_dword(std::uint8_t* out, std::int32_t value) {
  std::memcpy(out, &value, sizeof value);
}

// Windows with all lanes go out in eights; what is left of lanes is overwritten by the next window.
template <int kBits, int kBlocks>
MILLRACE_AVX2 void filter_row(const PlaneAxis& axis, const std::uint8_t* row, std::uint8_t* out) {
  const int stride = 32 * axis.vectors(), count = static_cast<int>(axis.windows.size());
  const std::uint8_t* packed = axis.lines.front().bytes;
  const PlaneAxis::Window* window = axis.windows.data();
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  int i = 0;
  for (; i + 8 <= axis.full_windows; i += 8, window += 8, packed += 4 * stride) {
    __m256i sums[4];
    for (int w = 0; w < 4; ++w) {
      sums[w] = filter_two<kBits, kBlocks>(packed + w * stride, axis, row + window[2 * w].source,
                                           row + window[2 * w + 1].source);
    }
    const __m256i bytes =
        _mm256_packus_epi16(finished_words<kBits>(sums[0], sums[1]), finished_words<kBits>(sums[2], sums[3]));
    store(out + window->output, _mm256_permutevar8x32_epi32(bytes, order));
  }
  for (; i < count; i += 2, window += 2, packed += stride) {
    const PlaneAxis::Window& second = window[i + 1 < count ? 1 : 0];
    const __m256i sums = filter_two<kBits, kBlocks>(packed, axis, row + window->source, row + second.source);
    const __m256i words = finished_words<kBits>(sums, sums), bytes = _mm256_packus_epi16(words, words);
    store_dword(out + window->output, _mm256_extract_epi32(bytes, 0));
    if (i + 1 < count) store_dword(out + second.output, _mm256_extract_epi32(bytes, 4));
  }
}

template <int kBits>
void filter_row(const PlaneAxis& axis, const std::uint8_t* row, std::uint8_t* out) {
  switch (axis.blocks) {
    case 1:
      return filter_row<kBits, 1>(axis, row, out);
    case 2:
      return filter_row<kBits, 2>(axis, row, out);
    default:
      return filter_row<kBits, 0>(axis, row, out);
  }
}

void horizontal(const PlaneAxis& axis, const std::uint8_t* row, std::uint8_t* out) {
  axis.bits == kNarrowBits ? filter_row<kNarrowBits>(axis, row, out) : filter_row<kWideBits>(axis, row, out);
}

// --- colour ---

struct Rgb {
  __m256i red, green, blue;
};

// Words. `cb`, `cr`: the distance from the middle, which products are added to: factors have no whole parts
// (jpeg/rows.h).
MILLRACE_AVX2_INLINE Rgb convert(__m256i y, __m256i cb, __m256i cr) {
  const __m256i red = _mm256_add_epi16(_mm256_mulhrs_epi16(cr, _mm256_set1_epi16(jpeg::kRedOfCr)), cr);
  const __m256i blue =
      _mm256_add_epi16(_mm256_mulhrs_epi16(cb, _mm256_set1_epi16(jpeg::kBlueOfCb)), _mm256_add_epi16(cb, cb));
  const __m256i factors = _mm256_set1_epi32(18734 * 65536 + (-22554 & 0xFFFF));
  const __m256i half = _mm256_set1_epi32(1 << 15);
  const __m256i low = _mm256_add_epi32(half, _mm256_madd_epi16(_mm256_unpacklo_epi16(cb, cr), factors));
  const __m256i high = _mm256_add_epi32(half, _mm256_madd_epi16(_mm256_unpackhi_epi16(cb, cr), factors));
  const __m256i both = _mm256_packs_epi32(_mm256_srai_epi32(low, 16), _mm256_srai_epi32(high, 16));
  return {_mm256_add_epi16(y, red), _mm256_add_epi16(y, _mm256_sub_epi16(both, cr)), _mm256_add_epi16(y, blue)};
}

MILLRACE_AVX2 void to_rgb(std::uint8_t* const planes[3], int count) {
  const __m256i zero = _mm256_setzero_si256(), middle = _mm256_set1_epi16(128);
  for (int i = 0; i < count; i += kStep) {
    const __m256i y = load(planes[0] + i), cb = load(planes[1] + i), cr = load(planes[2] + i);
    const Rgb low = convert(_mm256_unpacklo_epi8(y, zero), _mm256_sub_epi16(_mm256_unpacklo_epi8(cb, zero), middle),
                            _mm256_sub_epi16(_mm256_unpacklo_epi8(cr, zero), middle));
    const Rgb high = convert(_mm256_unpackhi_epi8(y, zero), _mm256_sub_epi16(_mm256_unpackhi_epi8(cb, zero), middle),
                             _mm256_sub_epi16(_mm256_unpackhi_epi8(cr, zero), middle));
    store(planes[0] + i, _mm256_packus_epi16(low.red, high.red));
    store(planes[1] + i, _mm256_packus_epi16(low.green, high.green));
    store(planes[2] + i, _mm256_packus_epi16(low.blue, high.blue));
  }
}

// For each 16 bytes of 16 pixels and each channel: which sample goes where; -128 leaves a zero.
struct MixTable {
  alignas(16) std::int8_t from[3][3][16];
};
constexpr MixTable kMix = [] {
  MixTable table{};
  for (int part = 0; part < 3; ++part) {
    for (int channel = 0; channel < 3; ++channel) {
      for (int i = 0; i < 16; ++i) {
        const int at = 16 * part + i;
        table.from[part][channel][i] = static_cast<std::int8_t>(at % 3 == channel ? at / 3 : -128);
      }
    }
  }
  return table;
}();

MILLRACE_AVX2 void to_pixels(const std::uint8_t* const planes[3], int count, std::uint8_t* pixels) {
  for (int i = 0; i < count; i += 16) {
    for (int part = 0; part < 3; ++part, pixels += 16) {
      __m128i mixed = _mm_setzero_si128();
      for (int c = 0; c < 3; ++c) {
        const __m128i samples = _mm_loadu_si128(reinterpret_cast<const __m128i*>(planes[c] + i));
        const __m128i order = _mm_load_si128(reinterpret_cast<const __m128i*>(kMix.from[part][c]));
        mixed = _mm_or_si128(mixed, _mm_shuffle_epi8(samples, order));
      }
      _mm_storeu_si128(reinterpret_cast<__m128i*>(pixels), mixed);
    }
  }
}

}  // namespace

const PlaneKernels& avx2_plane_kernels() {
  static constexpr PlaneKernels kKernels{&kShape, vertical, vertical_narrow, horizontal, to_rgb, to_pixels};
  return kKernels;
}

}  // namespace millrace::kernels

#endif  // __x86_64__
