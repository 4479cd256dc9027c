// The row kernels with AVX-512 without VBMI: colour conversion 64 pixels at a time; the others are AVX2's.
#include "kernels/cpu/jpeg/rows.h"

#if defined(__x86_64__)

// g++ 12 takes its own intrinsics' deliberately undefined operands for mistakes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#define MILLRACE_ROWS_TARGET __attribute__((target("avx2,avx512f,avx512bw,avx512vl,avx512dq")))
#define MILLRACE_ROWS_INLINE MILLRACE_ROWS_TARGET inline __attribute__((always_inline))

namespace millrace::kernels::jpeg {
namespace {

MILLRACE_ROWS_INLINE __m512i add_madd(__m512i sum, __m512i a, __m512i b) {
  return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
}

constexpr int kShort = 32;

struct Rgb {
  __m512i red, green, blue;
};

// The 16 pixels of a 128-bit lane become three lanes of 16 bytes, their thirds. A vector has one third of each: these.
constexpr int kThirds[3][4] = {{0, 1, 0, 1}, {1, 2, 1, 2}, {2, 0, 2, 0}};

// For each channel: the order of its samples, which has them where they belong in all thirds. Then which bytes of each
// vector are red's, and which green's. Vectors, for g++ 12 makes masks anew in each turn of a loop.
struct MixTable {
  alignas(64) std::uint8_t from[3][64];
  alignas(64) std::uint8_t red[3][64], green[3][64];
  alignas(64) std::uint8_t first_lane[64], last_lane[64];
};
constexpr MixTable kMix = [] {
  MixTable table{};
  for (int vector = 0; vector < 3; ++vector) {
    for (int i = 0; i < 64; ++i) {
      for (int third = 0; third < 3; ++third) {
        const int place = 16 * third + i % 16, pixel = place / 3;
        table.from[place % 3][i] = static_cast<std::uint8_t>(pixel / 2 + pixel % 2 * 8);
      }
      const int at = 16 * kThirds[vector][i / 16] + i % 16;
      table.red[vector][i] = at % 3 == 0 ? 255 : 0;
      table.green[vector][i] = at % 3 == 1 ? 255 : 0;
      table.first_lane[i] = i < 16 ? 255 : 0;
      table.last_lane[i] = i < 48 ? 0 : 255;
    }
  }
  return table;
}();

// `a` where the mask has ones.
MILLRACE_ROWS_INLINE __m512i chosen(const std::uint8_t* mask, __m512i a, __m512i b) {
  return _mm512_ternarylogic_epi64(_mm512_load_si512(mask), a, b, 0xCA);
}

MILLRACE_ROWS_INLINE __m512i mixed(__m512i red, __m512i green, __m512i blue, int vector) {
  return chosen(kMix.green[vector], green, chosen(kMix.red[vector], red, blue));
}

MILLRACE_ROWS_INLINE void store_pixels(const Rgb& rgb, std::uint8_t* pixels) {
  const __m512i red = _mm512_shuffle_epi8(rgb.red, _mm512_load_si512(kMix.from[0]));
  const __m512i green = _mm512_shuffle_epi8(rgb.green, _mm512_load_si512(kMix.from[1]));
  const __m512i blue = _mm512_shuffle_epi8(rgb.blue, _mm512_load_si512(kMix.from[2]));
  const __m512i a = mixed(red, green, blue, 0), b = mixed(red, green, blue, 1), c = mixed(red, green, blue, 2);
  // Lane by lane: a0 b0 c0 c1, a1 b1 a2 b2, c2 c3 a3 b3.
  const __m512i first = chosen(kMix.first_lane, a, _mm512_shuffle_i64x2(b, c, 0x40));
  const __m512i second = _mm512_permutex2var_epi64(a, _mm512_setr_epi64(2, 3, 10, 11, 4, 5, 12, 13), b);
  const __m512i third = chosen(kMix.last_lane, b, _mm512_shuffle_i64x2(c, a, 0xFE));
  _mm512_storeu_si512(pixels, first);
  _mm512_storeu_si512(pixels + 64, second);
  _mm512_storeu_si512(pixels + 128, third);
}

#include "kernels/cpu/jpeg/rows_512_loop.h"

}  // namespace

const PixelRowKernels& avx512bw_pixel_row_kernels() {
  static const PixelRowKernels kKernels = [] {
    PixelRowKernels kernels = avx2_pixel_row_kernels();
    kernels.to_rgb = to_rgb;
    return kernels;
  }();
  return kKernels;
}

}  // namespace millrace::kernels::jpeg

#endif  // __x86_64__
