// The row kernels with AVX-512: colour conversion 32 pixels at a time; the others are AVX2's.
#include "kernels/cpu/jpeg/rows.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define MILLRACE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi")))
#define MILLRACE_AVX512_INLINE MILLRACE_AVX512 inline __attribute__((always_inline))

namespace millrace::kernels::jpeg {
namespace {

constexpr int kStep = 32;

MILLRACE_AVX512_INLINE __m512i load_wide(const std::uint8_t* in) {
  return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in)));
}

struct Rgb {
  __m512i red, green, blue;  // 16 bits a sample, not clamped
};

// As AVX2's.
MILLRACE_AVX512_INLINE Rgb convert(__m512i y, __m512i cb, __m512i cr) {
  const __m512i red = _mm512_add_epi16(_mm512_mulhrs_epi16(cr, _mm512_set1_epi16(kRedOfCr)), cr);
  const __m512i blue =
      _mm512_add_epi16(_mm512_mulhrs_epi16(cb, _mm512_set1_epi16(kBlueOfCb)), _mm512_add_epi16(cb, cb));
  const __m512i factors = _mm512_set1_epi32(18734 * 65536 + (-22554 & 0xFFFF));
  const __m512i half = _mm512_set1_epi32(1 << 15);
  const __m512i low = _mm512_madd_epi16(_mm512_unpacklo_epi16(cb, cr), factors);
  const __m512i high = _mm512_madd_epi16(_mm512_unpackhi_epi16(cb, cr), factors);
  const __m512i both = _mm512_packs_epi32(_mm512_srai_epi32(_mm512_add_epi32(low, half), 16),
                                          _mm512_srai_epi32(_mm512_add_epi32(high, half), 16));
  return {_mm512_add_epi16(y, red), _mm512_add_epi16(y, _mm512_sub_epi16(both, cr)), _mm512_add_epi16(y, blue)};
}

// Red and green packed together lie in turns of eight: R0-7 G0-7 R8-15 G8-15 ... For each byte of 96: where among these
// 64 bytes, or from 64 on among blue's.
struct MixTable {
  alignas(64) std::uint8_t first[64], second[64];
};
constexpr MixTable kMix = [] {
  MixTable table{};
  for (int at = 0; at < 96; ++at) {
    const int pixel = at / 3, channel = at % 3;
    const int place = pixel / 8 * 16 + pixel % 8;
    const int from = channel == 0 ? place : channel == 1 ? place + 8 : 64 + place;
    (at < 64 ? table.first[at] : table.second[at - 64]) = static_cast<std::uint8_t>(from);
  }
  return table;
}();

MILLRACE_AVX512_INLINE void store_pixels(const Rgb& rgb, std::uint8_t* pixels) {
  const __m512i red_green = _mm512_packus_epi16(rgb.red, rgb.green), blue = _mm512_packus_epi16(rgb.blue, rgb.blue);
  const __m512i first = _mm512_permutex2var_epi8(red_green, _mm512_load_si512(kMix.first), blue);
  const __m512i second = _mm512_permutex2var_epi8(red_green, _mm512_load_si512(kMix.second), blue);
  _mm512_storeu_si512(pixels, first);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(pixels + 64), _mm512_castsi512_si256(second));
}

// The last 32 pixels overlap the 32 before them where the count is no multiple of 32.
MILLRACE_AVX512 void to_rgb(const std::uint8_t* luma, const std::uint8_t* blue, const std::uint8_t* red, int count,
                            std::uint8_t* pixels) {
  if (count < kStep) return avx2_pixel_row_kernels().to_rgb(luma, blue, red, count, pixels);
  const __m512i middle = _mm512_set1_epi16(128);
  for (int step = 0; step < count; step += kStep) {
    const int i = step + kStep <= count ? step : count - kStep;
    const __m512i cb = _mm512_sub_epi16(load_wide(blue + i), middle);
    const __m512i cr = _mm512_sub_epi16(load_wide(red + i), middle);
    store_pixels(convert(load_wide(luma + i), cb, cr), pixels + 3 * static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

const PixelRowKernels& avx512_pixel_row_kernels() {
  static const PixelRowKernels kKernels = [] {
    PixelRowKernels kernels = avx2_pixel_row_kernels();
    kernels.to_rgb = to_rgb;
    return kernels;
  }();
  return kKernels;
}

}  // namespace millrace::kernels::jpeg

#endif  // __x86_64__
