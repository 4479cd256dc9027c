// The plane kernels with AVX-512 VBMI and VNNI, 64 samples at a time.
#include "kernels/cpu/plane/plane_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#include "kernels/cpu/jpeg/rows.h"

#define MILLRACE_PLANE_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni")))
#define MILLRACE_PLANE_INLINE MILLRACE_PLANE_TARGET inline __attribute__((always_inline))

namespace millrace::kernels {
namespace {

constexpr WindowShape kShape{16, 64, 1};

MILLRACE_PLANE_INLINE __m512i added_products(__m512i sum, __m512i words, __m512i weights) {
  return _mm512_dpwssd_epi32(sum, words, weights);
}

#include "kernels/cpu/plane/plane_kernels_loop.h"

// --- the horizontal pass ---

// The finished values of a window's sixteen outputs.
template <int kBits, int kBlocks>
MILLRACE_PLANE_INLINE __m512i filter_window(const Line* lines, const PlaneAxis& axis, const std::uint8_t* row) {
  const __m512i indices = _mm512_load_si512(lines);
  __m512i upper = _mm512_setzero_si512(), sum = _mm512_set1_epi32(1 << (kBits - 1));
  const int blocks = kBlocks > 0 ? kBlocks : axis.blocks;
  for (int b = 0; b < blocks; ++b, row += 4 * axis.channels) {
    const __m512i samples = _mm512_permutexvar_epi8(indices, _mm512_loadu_si512(row));
    if constexpr (kBits == kNarrowBits) {
      sum = _mm512_dpbusd_epi32(sum, samples, _mm512_load_si512(lines + 1 + b));
    } else {
      upper = _mm512_dpbusd_epi32(upper, samples, _mm512_load_si512(lines + 1 + 2 * b));
      sum = _mm512_dpbusd_epi32(sum, samples, _mm512_load_si512(lines + 2 + 2 * b));
    }
  }
  if constexpr (kBits != kNarrowBits) sum = _mm512_add_epi32(_mm512_slli_epi32(upper, 7), sum);
  return _mm512_srai_epi32(sum, kBits);
}

MILLRACE_PLANE_INLINE void store_four(const __m512i values[4], std::uint8_t* out) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i bytes =
      _mm512_packus_epi16(_mm512_packs_epi32(values[0], values[1]), _mm512_packs_epi32(values[2], values[3]));
  _mm512_storeu_si512(out, _mm512_permutexvar_epi32(order, bytes));
}

// Windows with all lanes go out in fours; what is left of lanes is overwritten by the next window.
template <int kBits, int kBlocks>
MILLRACE_PLANE_TARGET void filter_row(const PlaneAxis& axis, const std::uint8_t* row, std::uint8_t* out) {
  const Line* lines = axis.lines.data();
  const int stride = axis.vectors(), count = static_cast<int>(axis.windows.size());
  const PlaneAxis::Window* window = axis.windows.data();
  int i = 0;
  for (; i + 4 <= axis.full_windows; i += 4, window += 4, lines += 4 * stride) {
    __m512i values[4];
    for (int w = 0; w < 4; ++w)
      values[w] = filter_window<kBits, kBlocks>(lines + w * stride, axis, row + window[w].source);
    store_four(values, out + window->output);
  }
  for (; i < count; ++i, ++window, lines += stride) {
    const __m512i values = filter_window<kBits, kBlocks>(lines, axis, row + window->source);
    const __m128i bytes = _mm512_cvtusepi32_epi8(_mm512_max_epi32(values, _mm512_setzero_si512()));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + window->output), bytes);
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

// --- pixels ---

// For each 64 bytes of 64 pixels: which of red's and green's bytes goes where, and which of blue's.
struct MixTable {
  alignas(64) std::uint8_t red_green[3][64], blue[3][64];
  std::uint64_t is_blue[3];
};
constexpr MixTable kMix = [] {
  MixTable table{};
  for (int part = 0; part < 3; ++part) {
    for (int i = 0; i < 64; ++i) {
      const int byte = 64 * part + i, pixel = byte / 3, channel = byte % 3;
      table.red_green[part][i] = static_cast<std::uint8_t>(channel == 1 ? 64 + pixel : pixel);
      table.blue[part][i] = static_cast<std::uint8_t>(pixel);
      if (channel == 2) table.is_blue[part] |= std::uint64_t{1} << i;
    }
  }
  return table;
}();

MILLRACE_PLANE_TARGET void to_pixels(const std::uint8_t* const planes[3], int count, std::uint8_t* pixels) {
  for (int i = 0; i < count; i += kStep, pixels += 3 * kStep) {
    const __m512i red = _mm512_loadu_si512(planes[0] + i), green = _mm512_loadu_si512(planes[1] + i);
    const __m512i blue = _mm512_loadu_si512(planes[2] + i);
    for (int part = 0; part < 3; ++part) {
      const __m512i mixed = _mm512_permutex2var_epi8(red, _mm512_load_si512(kMix.red_green[part]), green);
      const __m512i all =
          _mm512_mask_permutexvar_epi8(mixed, kMix.is_blue[part], _mm512_load_si512(kMix.blue[part]), blue);
      _mm512_storeu_si512(pixels + 64 * part, all);
    }
  }
}

}  // namespace

const PlaneKernels& avx512_plane_kernels() {
  static constexpr PlaneKernels kKernels{&kShape, vertical, vertical_narrow, horizontal, to_rgb, to_pixels};
  return kKernels;
}

}  // namespace millrace::kernels

#endif  // __x86_64__
