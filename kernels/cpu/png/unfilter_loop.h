// PNG filters undone in vectors, for a file that has defined MILLRACE_PNG_TARGET, the attribute of the instruction set,
// and select(). Included once by each such file, in its anonymous namespace.
//
// Each pixel needs the one to the left of it, so what counts is how long that chain is. It has an addition in Sub, two
// operations in Average, and three to five in Paeth, all else of which is done before, for whole vectors.
#pragma once

#define MILLRACE_PNG_INLINE MILLRACE_PNG_TARGET inline __attribute__((always_inline))

using Byte = std::uint8_t;

// The bytes from `at` on, of which the first kPixel count.
template <std::size_t kPixel>
MILLRACE_PNG_INLINE __m128i load_pixel(const Byte* at) {
  if constexpr (kPixel > 4) return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
  std::int32_t bytes;
  std::memcpy(&bytes, at, sizeof bytes);
  return _mm_cvtsi32_si128(bytes);
}

template <std::size_t kPixel>
MILLRACE_PNG_INLINE void store_pixel(Byte* at, __m128i pixel) {
  if constexpr (kPixel > 4) return _mm_storel_epi64(reinterpret_cast<__m128i*>(at), pixel);
  const std::int32_t bytes = _mm_cvtsi128_si32(pixel);
  std::memcpy(at, &bytes, sizeof bytes);
}

MILLRACE_PNG_INLINE __m256i load_32(const Byte* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}
MILLRACE_PNG_INLINE void store_32(Byte* at, __m256i bytes) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), bytes);
}

void copy(const Byte* in, const Byte*, std::size_t count, Byte* out) {
  std::memcpy(out, in, count);
}

template <std::size_t kPixel>
MILLRACE_PNG_TARGET void undo_sub(const Byte* in, const Byte*, std::size_t count, Byte* out) {
  __m128i left = _mm_setzero_si128();
  for (std::size_t i = 0; i < count; i += kPixel) {
    left = _mm_add_epi8(left, load_pixel<kPixel>(in + i));
    store_pixel<kPixel>(out + i, left);
  }
}

MILLRACE_PNG_TARGET void undo_up(const Byte* in, const Byte* above, std::size_t count, Byte* out) {
  for (std::size_t i = 0; i < count; i += 32) store_32(out + i, _mm256_add_epi8(load_32(in + i), load_32(above + i)));
}

// The processor's average is rounded up, that of complements therefore down.
template <std::size_t kPixel>
MILLRACE_PNG_TARGET void undo_average(const Byte* in, const Byte* above, std::size_t count, Byte* out) {
  const __m128i ones = _mm_set1_epi8(-1);
  __m128i left = ones;  // complements
  for (std::size_t i = 0; i < count; i += kPixel) {
    const __m128i up = _mm_xor_si128(load_pixel<kPixel>(above + i), ones);
    left = _mm_sub_epi8(_mm_avg_epu8(left, up), load_pixel<kPixel>(in + i));
    store_pixel<kPixel>(out + i, _mm_xor_si128(left, ones));
  }
}

// Paeth's predictor (PNG 9.4) is a step function of the pixel to the left, a. With b above, c at the corner, `low` and
// `high` the lesser and the greater of them, and d what lies between:
//
//   b >= c:  a <= low - 2d: a    then c    from low - d/2 on: b     from high on: a
//   b < c:   a <= low: a         then b    above high + d/2: c      from high + 2d on: a
//
// So four vectors say which it is: a itself where it is below `first` or above `last`, else `high` above `middle`, else
// `low`. Bytes saturate where a bound lies outside them; numbers are signed, 128 less, for there is no other comparison.
struct Steps {
  static constexpr std::size_t kBytes = 384;  // a multiple of every pixel's size, and of a vector's
  alignas(32) Byte first[kBytes + 32];
  alignas(32) Byte middle[kBytes + 32];
  alignas(32) Byte last[kBytes + 32];
  alignas(32) Byte low[kBytes + 32];   // with the byte from the file added
  alignas(32) Byte high[kBytes + 32];  // the same
};

MILLRACE_PNG_INLINE void find_steps(const Byte* in, const Byte* above, const Byte* corner, Steps& steps,
                                    std::size_t at) {
  const __m256i one = _mm256_set1_epi8(1), sign = _mm256_set1_epi8(-128), half = _mm256_set1_epi8(127);
  const __m256i b = load_32(above + at), c = load_32(corner + at), bytes = _mm256_xor_si256(load_32(in + at), sign);
  const __m256i high = _mm256_max_epu8(b, c), low = _mm256_min_epu8(b, c), d = _mm256_sub_epi8(high, low);
  const __m256i d_half = _mm256_and_si256(_mm256_srli_epi16(d, 1), half);
  const __m256i rises = _mm256_cmpeq_epi8(b, high);
  const __m256i low_and_1 = _mm256_adds_epu8(low, one), high_less_1 = _mm256_subs_epu8(high, one);
  const __m256i first = _mm256_subs_epu8(_mm256_subs_epu8(low_and_1, d), d);
  const __m256i last = _mm256_adds_epu8(_mm256_adds_epu8(high_less_1, d), d);
  const __m256i from = _mm256_subs_epu8(low, d_half);
  const __m256i above_from = _mm256_subs_epu8(from, one), above_high = _mm256_adds_epu8(high, d_half);
  // Where all bytes are at least `from`, there is no byte below it that they could be above.
  const __m256i never_low = _mm256_and_si256(rises, _mm256_cmpeq_epi8(from, _mm256_setzero_si256()));
  const __m256i lower = _mm256_blendv_epi8(low, high, never_low);
  store_32(steps.first + at, _mm256_xor_si256(_mm256_blendv_epi8(low_and_1, first, rises), sign));
  store_32(steps.last + at, _mm256_xor_si256(_mm256_blendv_epi8(last, high_less_1, rises), sign));
  store_32(steps.middle + at, _mm256_xor_si256(_mm256_blendv_epi8(above_high, above_from, rises), sign));
  store_32(steps.low + at, _mm256_add_epi8(lower, bytes));
  store_32(steps.high + at, _mm256_add_epi8(high, bytes));
}

template <std::size_t kPixel>
MILLRACE_PNG_TARGET void undo_paeth(const Byte* in, const Byte* above, std::size_t count, Byte* out) {
  const __m128i sign = _mm_set1_epi8(-128);
  __m128i left = _mm_add_epi8(load_pixel<kPixel>(in), load_pixel<kPixel>(above));  // where a and c are 0, it is b
  store_pixel<kPixel>(out, left);
  left = _mm_xor_si128(left, sign);
  Steps steps;
  for (std::size_t begin = kPixel; begin < count; begin += Steps::kBytes) {
    const std::size_t size = std::min(count - begin, Steps::kBytes);
    for (std::size_t i = 0; i < size; i += 32) find_steps(in + begin, above + begin, above + begin - kPixel, steps, i);
    for (std::size_t i = 0; i < size; i += kPixel) {
      const __m128i outside = _mm_or_si128(_mm_cmpgt_epi8(load_pixel<kPixel>(steps.first + i), left),
                                           _mm_cmpgt_epi8(left, load_pixel<kPixel>(steps.last + i)));
      const __m128i is_high = _mm_cmpgt_epi8(left, load_pixel<kPixel>(steps.middle + i));
      const __m128i other = select(is_high, load_pixel<kPixel>(steps.high + i), load_pixel<kPixel>(steps.low + i));
      left = select(outside, _mm_add_epi8(left, load_pixel<kPixel>(in + begin + i)), other);
      store_pixel<kPixel>(out + begin + i, _mm_xor_si128(left, sign));
    }
  }
}

// Four pixels are 16 bytes, of which 12 stay.
MILLRACE_PNG_TARGET void drop_fourth_of_each(const Byte* in, std::size_t count, Byte* out) {
  const __m128i places = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  for (std::size_t i = 0; i < count; i += 4) {
    const __m128i pixels = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + 4 * i));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 3 * i), _mm_shuffle_epi8(pixels, places));
  }
}

#include "kernels/cpu/png/unfilter_table.h"
