// Pillow's box with AVX-512: sums of columns in 16 bits, 64 of them in registers. Included by loops_avx512.h.
#pragma once

// The weights of a sum and of its two ends, 15 low bits and the rest of each.
struct BoxWeights {
  __m512i low, high;
};

MILLRACE_AUGMENT_INLINE BoxWeights box_weights(const BoxPass& pass) {
  const std::uint32_t low = (pass.inner & 0x7FFF) | (pass.outer & 0x7FFF) << 16;
  const std::uint32_t high = pass.inner >> 15 | pass.outer >> 15 << 16;
  return {_mm512_set1_epi32(static_cast<int>(low)), _mm512_set1_epi32(static_cast<int>(high))};
}

MILLRACE_AUGMENT_INLINE __m512i weighed_words(__m512i pairs, const BoxWeights& weights) {
  const __m512i low = add_products(_mm512_set1_epi32(1 << 23), pairs, weights.low);
  const __m512i high = _mm512_slli_epi32(_mm512_madd_epi16(pairs, weights.high), 15);
  return _mm512_srli_epi32(_mm512_add_epi32(low, high), 24);
}

MILLRACE_AUGMENT_INLINE __m512i weighed_halves(__m512i sums, __m512i ends, const BoxWeights& weights) {
  return _mm512_packs_epi32(weighed_words(_mm512_unpacklo_epi16(sums, ends), weights),
                            weighed_words(_mm512_unpackhi_epi16(sums, ends), weights));
}

MILLRACE_AUGMENT_TARGET void box_halves(const BoxPass& pass, const Byte* in, std::size_t columns, std::size_t width,
                                        int height, Byte* out) {
  if (pass.radius > 63) return box(pass, in, columns, width, height, out);  // whose sums need 17 bits with their sign
  const auto row = [=](int y) {
    return in + static_cast<std::size_t>(y < 0 ? 0 : y < height ? y : height - 1) * width;
  };
  const BoxWeights weights = box_weights(pass);
  const __m512i difference = all_halves(0xFF01), sum = all_halves(0x0101);  // of two bytes
  for (std::size_t x = 0; x < columns; x += 64) {
    const __mmask64 there = lowest(columns - x);
    Halves sums{_mm512_setzero_si512(), _mm512_setzero_si512()};
    for (int y = -1 - pass.radius; y < pass.radius; ++y) {
      const Halves more = widened(bytes_of(row(y) + x));
      sums = {_mm512_add_epi16(sums.low, more.low), _mm512_add_epi16(sums.high, more.high)};
    }
    for (int y = 0; y < height; ++y) {
      const __m512i before = bytes_of(row(y - pass.radius - 1) + x);
      const Halves moved = interleave(bytes_of(row(y + pass.radius) + x), before);
      const Halves ends = interleave(before, bytes_of(row(y + pass.radius + 1) + x));
      sums = {_mm512_add_epi16(sums.low, _mm512_maddubs_epi16(moved.low, difference)),
              _mm512_add_epi16(sums.high, _mm512_maddubs_epi16(moved.high, difference))};
      const __m512i result = packed({weighed_halves(sums.low, _mm512_maddubs_epi16(ends.low, sum), weights),
                                     weighed_halves(sums.high, _mm512_maddubs_epi16(ends.high, sum), weights)});
      _mm512_mask_storeu_epi8(out + static_cast<std::size_t>(y) * width + x, there, result);
    }
  }
}
