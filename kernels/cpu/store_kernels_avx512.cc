// Storing with AVX-512 VBMI: byte shuffles over two registers take pixels apart and look up 128 table bytes at once,
// one byte of the element a time.
#include "kernels/cpu/store_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define MILLRACE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi")))

namespace millrace::kernels {
namespace {

constexpr int kPixels = 64;

// For each channel: where the bytes of 64 output pixels lie in the first 128 of the 192 input bytes, and in the
// last 64.
struct SplitTable {
  alignas(64) std::uint8_t in_first[3][64];
  alignas(64) std::uint8_t in_last[3][64];
  std::uint64_t from_last[3];
};

constexpr SplitTable make_table(bool mirrored) {
  SplitTable table{};
  for (int c = 0; c < 3; ++c) {
    for (int i = 0; i < kPixels; ++i) {
      const int byte = 3 * (mirrored ? kPixels - 1 - i : i) + c;
      table.in_first[c][i] = static_cast<std::uint8_t>(byte % 128);
      table.in_last[c][i] = static_cast<std::uint8_t>(byte % 64);
      if (byte >= 128) table.from_last[c] |= std::uint64_t{1} << i;
    }
  }
  return table;
}

constexpr SplitTable kForward = make_table(false);
constexpr SplitTable kMirrored = make_table(true);

MILLRACE_AVX512 inline void split_64(const std::uint8_t* pixels, const SplitTable& table, int at,
                                     std::uint8_t* const planes[3]) {
  const __m512i a = _mm512_loadu_si512(pixels);
  const __m512i b = _mm512_loadu_si512(pixels + 64);
  const __m512i last = _mm512_loadu_si512(pixels + 128);
  for (int c = 0; c < 3; ++c) {
    const __m512i first = _mm512_permutex2var_epi8(a, _mm512_load_si512(table.in_first[c]), b);
    const __m512i plane =
        _mm512_mask_permutexvar_epi8(first, table.from_last[c], _mm512_load_si512(table.in_last[c]), last);
    _mm512_storeu_si512(planes[c] + at, plane);
  }
}

// The last 64 pixels overlap the 64 before them where the count is no multiple of 64; the same in widen16 and widen32.
MILLRACE_AVX512 void split(const std::uint8_t* pixels, int count, Flip flip, std::uint8_t* const planes[3]) {
  if (count < kPixels) return avx2_store_kernels().split(pixels, count, flip, planes);
  const bool mirrored = flip == Flip::kHorizontal;
  const SplitTable& table = mirrored ? kMirrored : kForward;
  for (int step = 0; step < count; step += kPixels) {
    const int x = step + kPixels <= count ? step : count - kPixels;
    split_64(pixels + 3 * static_cast<std::ptrdiff_t>(x), table, mirrored ? count - kPixels - x : x, planes);
  }
}

struct ByteTable {
  __m512i part[4];
};

MILLRACE_AVX512 inline ByteTable load_table(const std::uint8_t plane[256]) {
  return {{_mm512_load_si512(plane), _mm512_load_si512(plane + 64), _mm512_load_si512(plane + 128),
           _mm512_load_si512(plane + 192)}};
}

MILLRACE_AVX512 inline __m512i look_up(const ByteTable& table, __m512i index) {
  const __m512i below_128 = _mm512_permutex2var_epi8(table.part[0], index, table.part[1]);
  const __m512i from_128 = _mm512_permutex2var_epi8(table.part[2], index, table.part[3]);
  return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), below_128, from_128);
}

MILLRACE_AVX512 void widen16(const StorePlane& plane, const std::uint8_t* in, int count, std::uint16_t* out) {
  if (count < kPixels) return scalar_store_kernels().widen16(plane, in, count, out);
  const ByteTable table0 = load_table(plane.planes[0]), table1 = load_table(plane.planes[1]);
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);  // so that unpacking within lanes restores it
  for (int step = 0; step < count; step += kPixels) {
    const int x = step + kPixels <= count ? step : count - kPixels;
    const __m512i index = _mm512_permutexvar_epi64(order, _mm512_loadu_si512(in + x));
    const __m512i byte0 = look_up(table0, index), byte1 = look_up(table1, index);
    _mm512_storeu_si512(out + x, _mm512_unpacklo_epi8(byte0, byte1));
    _mm512_storeu_si512(out + x + 32, _mm512_unpackhi_epi8(byte0, byte1));
  }
}

MILLRACE_AVX512 void widen32(const StorePlane& plane, const std::uint8_t* in, int count, std::uint32_t* out) {
  if (count < kPixels) return scalar_store_kernels().widen32(plane, in, count, out);
  const ByteTable table0 = load_table(plane.planes[0]), table1 = load_table(plane.planes[1]);
  const ByteTable table2 = load_table(plane.planes[2]), table3 = load_table(plane.planes[3]);
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  for (int step = 0; step < count; step += kPixels) {
    const int x = step + kPixels <= count ? step : count - kPixels;
    const __m512i index = _mm512_permutexvar_epi32(order, _mm512_loadu_si512(in + x));
    const __m512i byte0 = look_up(table0, index), byte1 = look_up(table1, index);
    const __m512i byte2 = look_up(table2, index), byte3 = look_up(table3, index);
    const __m512i low01 = _mm512_unpacklo_epi8(byte0, byte1), high01 = _mm512_unpackhi_epi8(byte0, byte1);
    const __m512i low23 = _mm512_unpacklo_epi8(byte2, byte3), high23 = _mm512_unpackhi_epi8(byte2, byte3);
    _mm512_storeu_si512(out + x, _mm512_unpacklo_epi16(low01, low23));
    _mm512_storeu_si512(out + x + 16, _mm512_unpackhi_epi16(low01, low23));
    _mm512_storeu_si512(out + x + 32, _mm512_unpacklo_epi16(high01, high23));
    _mm512_storeu_si512(out + x + 48, _mm512_unpackhi_epi16(high01, high23));
  }
}

}  // namespace

const StoreKernels& avx512_store_kernels() {
  static constexpr StoreKernels kKernels{split, widen16, widen32};
  return kKernels;
}

}  // namespace millrace::kernels

#endif  // __x86_64__
