// YCbCr to RGB with 512-bit vectors, 64 pixels at a time, for a file that has defined MILLRACE_ROWS_TARGET, and in the
// anonymous namespace where it includes this:
//   Rgb: three vectors, which are bytes in the end; in each lane the even pixels before the odd ones
//   kShort: up to so many pixels at a row's end are AVX2's
//   add_madd(sum, a, b), store_pixels(rgb, pixels)
#pragma once

// g++ 12 makes constants anew in each turn of a loop, where that takes a register of another kind: a slot of the turn
// each. One that it cannot see through stays where it is.
MILLRACE_ROWS_INLINE __m512i kept(__m512i constant) {
  asm("" : "+v"(constant));
  return constant;
}

struct Factors {
  __m512i middle = kept(_mm512_set1_epi8(static_cast<char>(128)));
  __m512i below = kept(_mm512_set1_epi16(255));
  __m512i twice_even = kept(_mm512_set1_epi16(2)), twice_odd = kept(_mm512_set1_epi16(2 * 256));
  __m512i red = kept(_mm512_set1_epi16(kRedOfTwoCr)), blue = kept(_mm512_set1_epi16(kBlueOfTwoCb));
  __m512i green = kept(_mm512_set1_epi32(kGreenOfTwoCr * 65536 + (kGreenOfTwoCb & 0xFFFF)));
  __m512i half = kept(_mm512_set1_epi32(1 << 15));
  MILLRACE_ROWS_INLINE Factors() {}
};

// Words, not clamped, as AVX2's.
MILLRACE_ROWS_INLINE Rgb convert(__m512i y, __m512i cb, __m512i cr, const Factors& factors) {
  const __m512i red = _mm512_mulhrs_epi16(cr, factors.red), blue = _mm512_mulhrs_epi16(cb, factors.blue);
  const __m512i low = add_madd(factors.half, _mm512_unpacklo_epi16(cb, cr), factors.green);
  const __m512i high = add_madd(factors.half, _mm512_unpackhi_epi16(cb, cr), factors.green);
  const __m512i green = _mm512_packs_epi32(_mm512_srai_epi32(low, 16), _mm512_srai_epi32(high, 16));
  return {_mm512_add_epi16(y, red), _mm512_add_epi16(y, green), _mm512_add_epi16(y, blue)};
}

// 64 pixels, a byte a sample.
MILLRACE_ROWS_INLINE Rgb convert_bytes(__m512i y, __m512i cb, __m512i cr, const Factors& factors) {
  cb = _mm512_xor_si512(cb, factors.middle);
  cr = _mm512_xor_si512(cr, factors.middle);
  const Rgb even = convert(_mm512_and_si512(y, factors.below), _mm512_maddubs_epi16(factors.twice_even, cb),
                           _mm512_maddubs_epi16(factors.twice_even, cr), factors);
  const Rgb odd = convert(_mm512_srli_epi16(y, 8), _mm512_maddubs_epi16(factors.twice_odd, cb),
                          _mm512_maddubs_epi16(factors.twice_odd, cr), factors);
  return {_mm512_packus_epi16(even.red, odd.red), _mm512_packus_epi16(even.green, odd.green),
          _mm512_packus_epi16(even.blue, odd.blue)};
}

constexpr int kStep = 64;

// The last 64 pixels overlap the 64 before them where the count is no multiple of 64; up to kShort, they are AVX2's.
MILLRACE_ROWS_TARGET void to_rgb(const std::uint8_t* luma, const std::uint8_t* blue, const std::uint8_t* red, int count,
                                 std::uint8_t* pixels) {
  const auto of_avx2 = avx2_pixel_row_kernels().to_rgb;
  if (count < kStep) return of_avx2(luma, blue, red, count, pixels);
  const Factors factors;
  for (int step = 0; step < count; step += kStep) {
    const int left = count - step;
    if (left <= kShort) {
      const std::ptrdiff_t i = count - kShort;
      return of_avx2(luma + i, blue + i, red + i, kShort, pixels + 3 * i);
    }
    const std::ptrdiff_t i = left < kStep ? count - kStep : step;
    store_pixels(
        convert_bytes(_mm512_loadu_si512(luma + i), _mm512_loadu_si512(blue + i), _mm512_loadu_si512(red + i), factors),
        pixels + 3 * i);
  }
}
