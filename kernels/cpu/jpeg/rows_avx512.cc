// The row kernels with AVX-512: colour conversion 64 pixels at a time; the others are AVX2's.
#include "kernels/cpu/jpeg/rows.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define MILLRACE_ROWS_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni")))
#define MILLRACE_ROWS_INLINE MILLRACE_ROWS_TARGET inline __attribute__((always_inline))

namespace millrace::kernels::jpeg {
namespace {

MILLRACE_ROWS_INLINE __m512i add_madd(__m512i sum, __m512i a, __m512i b) {
  return _mm512_dpwssd_epi32(sum, a, b);
}

constexpr int kShort = 0;

struct Rgb {
  __m512i red, green, blue;
};

// For each byte of 192: where among 64 of red and 64 of green, or of blue.
struct MixTable {
  alignas(64) std::uint8_t from[3][64];
  std::uint64_t blue[3];
};
constexpr MixTable kMix = [] {
  MixTable table{};
  for (int at = 0; at < 192; ++at) {
    const int pixel = at / 3, channel = at % 3;
    const int place = pixel / 16 * 16 + pixel % 16 / 2 + pixel % 2 * 8;
    table.from[at / 64][at % 64] = static_cast<std::uint8_t>(channel == 1 ? 64 + place : place);
    table.blue[at / 64] |= std::uint64_t{channel == 2} << (at % 64);
  }
  return table;
}();

MILLRACE_ROWS_INLINE void store_pixels(const Rgb& rgb, std::uint8_t* pixels) {
  for (int i = 0; i < 3; ++i) {
    const __m512i from = _mm512_load_si512(kMix.from[i]);
    const __m512i red_green = _mm512_permutex2var_epi8(rgb.red, from, rgb.green);
    _mm512_storeu_si512(pixels + 64 * i, _mm512_mask_permutexvar_epi8(red_green, kMix.blue[i], from, rgb.blue));
  }
}

#include "kernels/cpu/jpeg/rows_512_loop.h"

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
