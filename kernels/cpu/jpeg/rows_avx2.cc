// The row kernels with AVX2, 16 samples at a time, pixels 32.
#include "kernels/cpu/jpeg/rows.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define MILLRACE_AVX2 __attribute__((target("avx2")))
#define MILLRACE_AVX2_INLINE MILLRACE_AVX2 inline __attribute__((always_inline))

namespace millrace::kernels::jpeg {
namespace {

constexpr int kStep = 16;

MILLRACE_AVX2_INLINE __m256i load_wide(const std::uint8_t* in) {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in)));
}
MILLRACE_AVX2_INLINE __m256i load16(const std::int16_t* in) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
}
MILLRACE_AVX2_INLINE __m256i triple(__m256i x) {
  return _mm256_add_epi16(_mm256_add_epi16(x, x), x);
}

// Even and odd samples, both below 256, in turns.
MILLRACE_AVX2_INLINE void store_turns(__m256i even, __m256i odd, std::uint8_t* out) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_or_si256(even, _mm256_slli_epi16(odd, 8)));
}

MILLRACE_AVX2 void widen(const std::uint8_t* in, int count, std::uint8_t* out) {
  for (int i = 0; i < count; i += kStep) {
    const __m256i near = triple(load_wide(in + i));
    const __m256i even = _mm256_add_epi16(_mm256_add_epi16(near, load_wide(in + i - 1)), _mm256_set1_epi16(1));
    const __m256i odd = _mm256_add_epi16(_mm256_add_epi16(near, load_wide(in + i + 1)), _mm256_set1_epi16(2));
    store_turns(_mm256_srli_epi16(even, 2), _mm256_srli_epi16(odd, 2), out + 2 * i);
  }
}

MILLRACE_AVX2 void blend(const std::uint8_t* near, const std::uint8_t* far, int count, std::int16_t* sums) {
  for (int i = -1; i <= count; i += kStep) {
    const __m256i sum = _mm256_add_epi16(triple(load_wide(near + i)), load_wide(far + i));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + i), sum);
  }
}

MILLRACE_AVX2 void widen_sums(const std::int16_t* sums, int count, std::uint8_t* out) {
  for (int i = 0; i < count; i += kStep) {
    const __m256i near = triple(load16(sums + i));
    const __m256i even = _mm256_add_epi16(_mm256_add_epi16(near, load16(sums + i - 1)), _mm256_set1_epi16(8));
    const __m256i odd = _mm256_add_epi16(_mm256_add_epi16(near, load16(sums + i + 1)), _mm256_set1_epi16(7));
    store_turns(_mm256_srli_epi16(even, 4), _mm256_srli_epi16(odd, 4), out + 2 * i);
  }
}

MILLRACE_AVX2 void blend_only(const std::uint8_t* near, const std::uint8_t* far, int count, int bias,
                              std::uint8_t* out) {
  const __m256i rounding = _mm256_set1_epi16(static_cast<std::int16_t>(bias));
  for (int i = 0; i < count; i += kStep) {
    const __m256i sum = _mm256_add_epi16(triple(load_wide(near + i)), load_wide(far + i));
    const __m256i samples = _mm256_srli_epi16(_mm256_add_epi16(sum, rounding), 2);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi16(samples, samples), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm256_castsi256_si128(packed));
  }
}

struct Rgb {
  __m256i red, green, blue;
};

// Words. `cb`, `cr`: twice the distance from the middle. Green's two products are rounded together.
MILLRACE_AVX2_INLINE Rgb convert(__m256i y, __m256i cb, __m256i cr) {
  const __m256i red = _mm256_mulhrs_epi16(cr, _mm256_set1_epi16(kRedOfTwoCr));
  const __m256i blue = _mm256_mulhrs_epi16(cb, _mm256_set1_epi16(kBlueOfTwoCb));
  const __m256i factors = _mm256_set1_epi32(kGreenOfTwoCr * 65536 + (kGreenOfTwoCb & 0xFFFF));
  const __m256i half = _mm256_set1_epi32(1 << 15);
  const __m256i low = _mm256_madd_epi16(_mm256_unpacklo_epi16(cb, cr), factors);
  const __m256i high = _mm256_madd_epi16(_mm256_unpackhi_epi16(cb, cr), factors);
  const __m256i green = _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(low, half), 16),
                                           _mm256_srai_epi32(_mm256_add_epi32(high, half), 16));
  return {_mm256_add_epi16(y, red), _mm256_add_epi16(y, green), _mm256_add_epi16(y, blue)};
}

MILLRACE_AVX2_INLINE __m256i load32(const std::uint8_t* in) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
}

// Bytes that are even words, and odd ones, of which the first operand has weights.
MILLRACE_AVX2_INLINE __m256i twice_even(__m256i bytes) {
  return _mm256_maddubs_epi16(_mm256_set1_epi16(2), bytes);
}
MILLRACE_AVX2_INLINE __m256i twice_odd(__m256i bytes) {
  return _mm256_maddubs_epi16(_mm256_set1_epi16(2 * 256), bytes);
}

// 32 pixels, a byte a sample; in each lane the even ones before the odd ones.
MILLRACE_AVX2_INLINE Rgb convert_bytes(__m256i y, __m256i cb, __m256i cr) {
  const __m256i middle = _mm256_set1_epi8(static_cast<char>(128));
  cb = _mm256_xor_si256(cb, middle);
  cr = _mm256_xor_si256(cr, middle);
  const Rgb even = convert(_mm256_and_si256(y, _mm256_set1_epi16(255)), twice_even(cb), twice_even(cr));
  const Rgb odd = convert(_mm256_srli_epi16(y, 8), twice_odd(cb), twice_odd(cr));
  return {_mm256_packus_epi16(even.red, odd.red), _mm256_packus_epi16(even.green, odd.green),
          _mm256_packus_epi16(even.blue, odd.blue)};
}

// For each third of 16 pixels and each channel: which sample goes where; -128 leaves a zero. The same for both lanes.
struct MixTable {
  alignas(32) std::int8_t from[3][3][32];
};
constexpr MixTable kMix = [] {
  MixTable table{};
  for (int part = 0; part < 3; ++part) {
    for (int channel = 0; channel < 3; ++channel) {
      for (int i = 0; i < 32; ++i) {
        const int at = 16 * part + i % 16;
        table.from[part][channel][i] = static_cast<std::int8_t>(at % 3 == channel ? at / 3 : -128);
      }
    }
  }
  return table;
}();

// The same for all thirds at once: each has its own places for a channel, and together they have all. Then which places
// of a third are red's, and which green's.
struct TurnTable {
  alignas(32) std::int8_t from[3][32];
  alignas(32) std::int8_t red[3][32], green[3][32];
};
constexpr TurnTable kTurns = [] {
  TurnTable table{};
  for (int part = 0; part < 3; ++part) {
    for (int i = 0; i < 32; ++i) {
      const int at = 16 * part + i % 16;
      const int pixel = at / 3;
      table.from[at % 3][i] = static_cast<std::int8_t>(pixel / 2 + pixel % 2 * 8);
      table.red[part][i] = at % 3 == 0 ? -1 : 0;
      table.green[part][i] = at % 3 == 1 ? -1 : 0;
    }
  }
  return table;
}();

MILLRACE_AVX2_INLINE void store_pixels(const Rgb& rgb, std::uint8_t* pixels) {
  const auto* const from = reinterpret_cast<const __m256i*>(kTurns.from);
  const __m256i red = _mm256_shuffle_epi8(rgb.red, from[0]), green = _mm256_shuffle_epi8(rgb.green, from[1]);
  const __m256i blue = _mm256_shuffle_epi8(rgb.blue, from[2]);
  auto* const out = reinterpret_cast<__m128i*>(pixels);
  for (int part = 0; part < 3; ++part) {
    const __m256i reds = _mm256_load_si256(reinterpret_cast<const __m256i*>(kTurns.red[part]));
    const __m256i greens = _mm256_load_si256(reinterpret_cast<const __m256i*>(kTurns.green[part]));
    const __m256i mixed = _mm256_blendv_epi8(_mm256_blendv_epi8(blue, red, reds), green, greens);
    _mm_storeu_si128(out + part, _mm256_castsi256_si128(mixed));
    _mm_storeu_si128(out + part + 3, _mm256_extracti128_si256(mixed, 1));
  }
}

MILLRACE_AVX2_INLINE __m128i narrow(__m256i words) {
  return _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

MILLRACE_AVX2_INLINE void store_half(const Rgb& words, std::uint8_t* pixels) {
  const __m128i red = narrow(words.red), green = narrow(words.green), blue = narrow(words.blue);
  for (int part = 0; part < 3; ++part) {
    const auto order = [part](int channel) MILLRACE_AVX2 {
      return _mm_load_si128(reinterpret_cast<const __m128i*>(kMix.from[part][channel]));
    };
    const __m128i mixed = _mm_or_si128(_mm_shuffle_epi8(red, order(0)), _mm_shuffle_epi8(green, order(1)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(pixels) + part, _mm_or_si128(mixed, _mm_shuffle_epi8(blue, order(2))));
  }
}

// 16 to 31 pixels: rows of thumbnails.
MILLRACE_AVX2 void short_to_rgb(const std::uint8_t* luma, const std::uint8_t* blue, const std::uint8_t* red, int count,
                                std::uint8_t* pixels) {
  const __m256i middle = _mm256_set1_epi16(128);
  const auto twice = [middle](const std::uint8_t* in)
                         MILLRACE_AVX2 { return _mm256_slli_epi16(_mm256_sub_epi16(load_wide(in), middle), 1); };
  for (const std::ptrdiff_t i : {0, count - kStep}) {
    store_half(convert(load_wide(luma + i), twice(blue + i), twice(red + i)), pixels + 3 * i);
  }
}

// The last 32 pixels overlap the 32 before them where the count is no multiple of 32.
MILLRACE_AVX2 void to_rgb(const std::uint8_t* luma, const std::uint8_t* blue, const std::uint8_t* red, int count,
                          std::uint8_t* pixels) {
  constexpr int kPixels = 32;
  if (count < kStep) return scalar_pixel_row_kernels().to_rgb(luma, blue, red, count, pixels);
  if (count < kPixels) return short_to_rgb(luma, blue, red, count, pixels);
  for (int step = 0; step < count; step += kPixels) {
    const std::ptrdiff_t i = step + kPixels <= count ? step : count - kPixels;
    store_pixels(convert_bytes(load32(luma + i), load32(blue + i), load32(red + i)), pixels + 3 * i);
  }
}

}  // namespace

const PixelRowKernels& avx2_pixel_row_kernels() {
  static constexpr PixelRowKernels kKernels{widen, blend, widen_sums, blend_only, to_rgb};
  return kKernels;
}

}  // namespace millrace::kernels::jpeg

#endif  // __x86_64__
