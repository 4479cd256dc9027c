// The plane kernels of AVX-512 that need neither VBMI nor VNNI, 64 samples at a time, for a file that has defined
// MILLRACE_PLANE_TARGET, MILLRACE_PLANE_INLINE and added_products(). Included once by each such file, in its anonymous
// namespace.
#pragma once

constexpr int kStep = 64;
constexpr std::int32_t kWideHalf = 1 << (kWideBits - 1), kNarrowHalf = 1 << (kNarrowBits - 1);

// --- the vertical pass ---

// Words of both rows' samples, for both weights: of the even samples and of the odd ones.
MILLRACE_PLANE_INLINE void add_words(__m512i pairs, __m512i weights, __m512i sums[2]) {
  sums[0] = added_products(sums[0], _mm512_and_si512(pairs, _mm512_set1_epi16(0xFF)), weights);
  sums[1] = added_products(sums[1], _mm512_srli_epi16(pairs, 8), weights);
}

// A pair of rows' 64 samples times both weights, added to the sums; in the order that packing within 128-bit lanes
// undoes.
MILLRACE_PLANE_INLINE void add_pair(const std::uint8_t* first, const std::uint8_t* second, __m512i weights,
                                    __m512i sums[4]) {
  const __m512i a = _mm512_loadu_si512(first), b = _mm512_loadu_si512(second);
  add_words(_mm512_unpacklo_epi16(a, b), weights, sums);
  add_words(_mm512_unpackhi_epi16(a, b), weights, sums + 2);
}

MILLRACE_PLANE_INLINE __m512i pair_of(const std::int16_t* weights) {
  std::int32_t pair;
  std::memcpy(&pair, weights, sizeof pair);
  return _mm512_set1_epi32(pair);
}

// Values of even and of odd samples to words in their order.
MILLRACE_PLANE_INLINE __m512i finished_words(const __m512i sums[2]) {
  return _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_srli_epi32(sums[0], kWideBits),
                                 _mm512_slli_epi32(sums[1], 16 - kWideBits));
}

MILLRACE_PLANE_INLINE __m512i finish(const __m512i sums[4]) {
  return _mm512_packus_epi16(finished_words(sums), finished_words(sums + 2));
}

// The same of 32 samples, whose words come in their order.
MILLRACE_PLANE_INLINE void add_half_pair(const std::uint8_t* first, const std::uint8_t* second, __m512i weights,
                                         __m512i sums[2]) {
  const __m512i a = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(first)));
  const __m512i b = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(second)));
  add_words(_mm512_or_si512(a, _mm512_slli_epi32(b, 16)), weights, sums);
}

MILLRACE_PLANE_INLINE void store_half(std::uint8_t* out, const __m512i sums[2]) {
  const __m512i words = _mm512_max_epi16(finished_words(sums), _mm512_setzero_si512());
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_cvtusepi16_epi8(words));
}

// kPairs 0: any number.
template <int kPairs>
MILLRACE_PLANE_TARGET void vertical_pairs(const std::uint8_t* const* rows, const std::int16_t* weights, int taps,
                                          int samples, std::uint8_t* out) {
  constexpr int kKnown = kPairs > 0 ? kPairs : 1;
  __m512i known[kKnown];
  for (int p = 0; p < kKnown; ++p) known[p] = pair_of(weights + 2 * p);
  const int pairs = kPairs > 0 ? kPairs : taps / 2;
  const auto weights_of = [&](int p) MILLRACE_PLANE_TARGET {
    return kPairs > 0 ? known[p % kKnown] : pair_of(weights + 2 * p);
  };
  __m512i sums[4];
  int x = 0;
  for (; x + kStep / 2 < samples; x += kStep) {
    for (__m512i& sum : sums) sum = _mm512_set1_epi32(kWideHalf);
    for (int p = 0; p < pairs; ++p) add_pair(rows[2 * p] + x, rows[2 * p + 1] + x, weights_of(p), sums);
    _mm512_storeu_si512(out + x, finish(sums));
  }
  if (x >= samples) return;
  sums[0] = sums[1] = _mm512_set1_epi32(kWideHalf);
  for (int p = 0; p < pairs; ++p) add_half_pair(rows[2 * p] + x, rows[2 * p + 1] + x, weights_of(p), sums);
  store_half(out + x, sums);
}

void vertical(const std::uint8_t* const* rows, const std::int16_t* weights, int taps, int samples, std::uint8_t* out) {
  switch (taps) {
    case 2:
      return vertical_pairs<1>(rows, weights, taps, samples, out);
    case 4:
      return vertical_pairs<2>(rows, weights, taps, samples, out);
    case 6:
      return vertical_pairs<3>(rows, weights, taps, samples, out);
    default:
      return vertical_pairs<0>(rows, weights, taps, samples, out);
  }
}

// Two rows' samples byte by byte, times both weights. No sum leaves 16 bits: all weights are positive and add up to
// 128.
MILLRACE_PLANE_INLINE void add_narrow_pair(const std::uint8_t* first, const std::uint8_t* second, __m512i weights,
                                           __m512i sums[2]) {
  const __m512i a = _mm512_loadu_si512(first), b = _mm512_loadu_si512(second);
  sums[0] = _mm512_add_epi16(sums[0], _mm512_maddubs_epi16(_mm512_unpacklo_epi8(a, b), weights));
  sums[1] = _mm512_add_epi16(sums[1], _mm512_maddubs_epi16(_mm512_unpackhi_epi8(a, b), weights));
}

MILLRACE_PLANE_INLINE __m512i narrow_pair_of(const std::int16_t* weights) {
  return _mm512_set1_epi16(static_cast<std::int16_t>(weights[0] | weights[1] * 256));
}

// The same of 32 samples.
MILLRACE_PLANE_INLINE void add_half_narrow_pair(const std::uint8_t* first, const std::uint8_t* second, __m256i weights,
                                                __m256i sums[2]) {
  const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(first));
  const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(second));
  sums[0] = _mm256_add_epi16(sums[0], _mm256_maddubs_epi16(_mm256_unpacklo_epi8(a, b), weights));
  sums[1] = _mm256_add_epi16(sums[1], _mm256_maddubs_epi16(_mm256_unpackhi_epi8(a, b), weights));
}

// kPairs 0: any number.
template <int kPairs>
MILLRACE_PLANE_TARGET void vertical_narrow_pairs(const std::uint8_t* const* rows, const std::int16_t* weights, int taps,
                                                 int samples, std::uint8_t* out) {
  constexpr int kKnown = kPairs > 0 ? kPairs : 1;
  __m512i known[kKnown];
  for (int p = 0; p < kKnown; ++p) known[p] = narrow_pair_of(weights + 2 * p);
  const int pairs = kPairs > 0 ? kPairs : taps / 2;
  const auto weights_of = [&](int p) MILLRACE_PLANE_TARGET {
    return kPairs > 0 ? known[p % kKnown] : narrow_pair_of(weights + 2 * p);
  };
  int x = 0;
  for (; x + kStep / 2 < samples; x += kStep) {
    __m512i sums[2] = {_mm512_set1_epi16(kNarrowHalf), _mm512_set1_epi16(kNarrowHalf)};
    for (int p = 0; p < pairs; ++p) add_narrow_pair(rows[2 * p] + x, rows[2 * p + 1] + x, weights_of(p), sums);
    const __m512i low = _mm512_srli_epi16(sums[0], kNarrowBits), high = _mm512_srli_epi16(sums[1], kNarrowBits);
    _mm512_storeu_si512(out + x, _mm512_packus_epi16(low, high));
  }
  if (x >= samples) return;
  __m256i sums[2] = {_mm256_set1_epi16(kNarrowHalf), _mm256_set1_epi16(kNarrowHalf)};
  for (int p = 0; p < pairs; ++p)
    add_half_narrow_pair(rows[2 * p] + x, rows[2 * p + 1] + x, _mm512_castsi512_si256(weights_of(p)), sums);
  const __m256i low = _mm256_srli_epi16(sums[0], kNarrowBits), high = _mm256_srli_epi16(sums[1], kNarrowBits);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + x), _mm256_packus_epi16(low, high));
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

// --- colour ---

struct Rgb {
  __m512i red, green, blue;
};

// Words. `cb`, `cr`: the distance from the middle, which products are added to: factors have no whole parts
// (jpeg/rows.h).
MILLRACE_PLANE_INLINE Rgb convert(__m512i y, __m512i cb, __m512i cr) {
  const __m512i red = _mm512_add_epi16(_mm512_mulhrs_epi16(cr, _mm512_set1_epi16(jpeg::kRedOfCr)), cr);
  const __m512i blue =
      _mm512_add_epi16(_mm512_mulhrs_epi16(cb, _mm512_set1_epi16(jpeg::kBlueOfCb)), _mm512_add_epi16(cb, cb));
  const __m512i factors = _mm512_set1_epi32(18734 * 65536 + (-22554 & 0xFFFF));
  const __m512i half = _mm512_set1_epi32(1 << 15);
  const __m512i low = added_products(half, _mm512_unpacklo_epi16(cb, cr), factors);
  const __m512i high = added_products(half, _mm512_unpackhi_epi16(cb, cr), factors);
  const __m512i both = _mm512_packs_epi32(_mm512_srai_epi32(low, 16), _mm512_srai_epi32(high, 16));
  return {_mm512_add_epi16(y, red), _mm512_add_epi16(y, _mm512_sub_epi16(both, cr)), _mm512_add_epi16(y, blue)};
}

MILLRACE_PLANE_TARGET void to_rgb(std::uint8_t* const planes[3], int count) {
  const __m512i zero = _mm512_setzero_si512(), middle = _mm512_set1_epi16(128);
  int i = 0;
  for (; i + kStep / 2 < count; i += kStep) {
    const __m512i y = _mm512_loadu_si512(planes[0] + i);
    const __m512i cb = _mm512_loadu_si512(planes[1] + i), cr = _mm512_loadu_si512(planes[2] + i);
    const Rgb low = convert(_mm512_unpacklo_epi8(y, zero), _mm512_sub_epi16(_mm512_unpacklo_epi8(cb, zero), middle),
                            _mm512_sub_epi16(_mm512_unpacklo_epi8(cr, zero), middle));
    const Rgb high = convert(_mm512_unpackhi_epi8(y, zero), _mm512_sub_epi16(_mm512_unpackhi_epi8(cb, zero), middle),
                             _mm512_sub_epi16(_mm512_unpackhi_epi8(cr, zero), middle));
    _mm512_storeu_si512(planes[0] + i, _mm512_packus_epi16(low.red, high.red));
    _mm512_storeu_si512(planes[1] + i, _mm512_packus_epi16(low.green, high.green));
    _mm512_storeu_si512(planes[2] + i, _mm512_packus_epi16(low.blue, high.blue));
  }
  std::uint8_t* const rest[3] = {planes[0] + i, planes[1] + i, planes[2] + i};
  if (i < count) avx2_plane_kernels().to_rgb(rest, count - i);
}
