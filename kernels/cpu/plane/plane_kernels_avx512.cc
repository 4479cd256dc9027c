// The plane kernels with AVX-512 VBMI and VNNI, 64 samples at a time.
#include "kernels/cpu/plane/plane_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#include "kernels/cpu/jpeg/rows.h"

#define MILLRACE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni")))
#define MILLRACE_AVX512_INLINE MILLRACE_AVX512 inline __attribute__((always_inline))

namespace millrace::kernels {
namespace {

constexpr int kStep = 64;
constexpr std::int32_t kWideHalf = 1 << (kWideBits - 1), kNarrowHalf = 1 << (kNarrowBits - 1);
constexpr WindowShape kShape{16, 64, 1};

// --- the vertical pass ---

// A pair of rows' 64 samples, pair by pair as 16-bit words, with both weights, added to the sums; in the order that
// packing within 128-bit lanes undoes.
MILLRACE_AVX512_INLINE void add_pair(const std::uint8_t* first, const std::uint8_t* second, __m512i weights,
                                     __m512i sums[4]) {
  const __m512i a = _mm512_loadu_si512(first), b = _mm512_loadu_si512(second), zero = _mm512_setzero_si512();
  const __m512i a_low = _mm512_unpacklo_epi8(a, zero), a_high = _mm512_unpackhi_epi8(a, zero);
  const __m512i b_low = _mm512_unpacklo_epi8(b, zero), b_high = _mm512_unpackhi_epi8(b, zero);
  sums[0] = _mm512_dpwssd_epi32(sums[0], _mm512_unpacklo_epi16(a_low, b_low), weights);
  sums[1] = _mm512_dpwssd_epi32(sums[1], _mm512_unpackhi_epi16(a_low, b_low), weights);
  sums[2] = _mm512_dpwssd_epi32(sums[2], _mm512_unpacklo_epi16(a_high, b_high), weights);
  sums[3] = _mm512_dpwssd_epi32(sums[3], _mm512_unpackhi_epi16(a_high, b_high), weights);
}

MILLRACE_AVX512_INLINE __m512i pair_of(const std::int16_t* weights) {
  std::int32_t pair;
  std::memcpy(&pair, weights, sizeof pair);
  return _mm512_set1_epi32(pair);
}

MILLRACE_AVX512_INLINE __m512i finish(const __m512i sums[4]) {
  __m512i shifted[4];
  for (int i = 0; i < 4; ++i) shifted[i] = _mm512_srai_epi32(sums[i], kWideBits);
  return _mm512_packus_epi16(_mm512_packs_epi32(shifted[0], shifted[1]), _mm512_packs_epi32(shifted[2], shifted[3]));
}

template <int kPairs>
MILLRACE_AVX512 void vertical_pairs(const std::uint8_t* const* rows, const std::int16_t* weights, int samples,
                                    std::uint8_t* out) {
  __m512i pairs[kPairs];
  for (int p = 0; p < kPairs; ++p) pairs[p] = pair_of(weights + 2 * p);
  for (int x = 0; x < samples; x += kStep) {
    __m512i sums[4];
    for (__m512i& sum : sums) sum = _mm512_set1_epi32(kWideHalf);
    for (int p = 0; p < kPairs; ++p) add_pair(rows[2 * p] + x, rows[2 * p + 1] + x, pairs[p], sums);
    _mm512_storeu_si512(out + x, finish(sums));
  }
}

MILLRACE_AVX512 void vertical_many(const std::uint8_t* const* rows, const std::int16_t* weights, int taps, int samples,
                                   std::uint8_t* out) {
  for (int x = 0; x < samples; x += kStep) {
    __m512i sums[4];
    for (__m512i& sum : sums) sum = _mm512_set1_epi32(kWideHalf);
    for (int t = 0; t < taps; t += 2) add_pair(rows[t] + x, rows[t + 1] + x, pair_of(weights + t), sums);
    _mm512_storeu_si512(out + x, finish(sums));
  }
}

void vertical(const std::uint8_t* const* rows, const std::int16_t* weights, int taps, int samples, std::uint8_t* out) {
  switch (taps) {
    case 2:
      return vertical_pairs<1>(rows, weights, samples, out);
    case 4:
      return vertical_pairs<2>(rows, weights, samples, out);
    case 6:
      return vertical_pairs<3>(rows, weights, samples, out);
    default:
      return vertical_many(rows, weights, taps, samples, out);
  }
}

// Two rows' samples byte by byte, times both weights. No sum leaves 16 bits: all weights are positive and add up to
// 128.
MILLRACE_AVX512_INLINE void add_narrow_pair(const std::uint8_t* first, const std::uint8_t* second, __m512i weights,
                                            __m512i sums[2]) {
  const __m512i a = _mm512_loadu_si512(first), b = _mm512_loadu_si512(second);
  sums[0] = _mm512_add_epi16(sums[0], _mm512_maddubs_epi16(_mm512_unpacklo_epi8(a, b), weights));
  sums[1] = _mm512_add_epi16(sums[1], _mm512_maddubs_epi16(_mm512_unpackhi_epi8(a, b), weights));
}

MILLRACE_AVX512_INLINE __m512i narrow_pair_of(const std::int16_t* weights) {
  return _mm512_set1_epi16(static_cast<std::int16_t>(weights[0] | weights[1] * 256));
}

// kPairs 0: any number.
template <int kPairs>
MILLRACE_AVX512 void vertical_narrow_pairs(const std::uint8_t* const* rows, const std::int16_t* weights, int taps,
                                           int samples, std::uint8_t* out) {
  constexpr int kKnown = kPairs > 0 ? kPairs : 1;
  __m512i known[kKnown];
  for (int p = 0; p < kKnown; ++p) known[p] = narrow_pair_of(weights + 2 * p);
  const int pairs = kPairs > 0 ? kPairs : taps / 2;
  for (int x = 0; x < samples; x += kStep) {
    __m512i sums[2] = {_mm512_set1_epi16(kNarrowHalf), _mm512_set1_epi16(kNarrowHalf)};
    for (int p = 0; p < pairs; ++p) {
      const __m512i both = kPairs > 0 ? known[p % kKnown] : narrow_pair_of(weights + 2 * p);
      add_narrow_pair(rows[2 * p] + x, rows[2 * p + 1] + x, both, sums);
    }
    const __m512i low = _mm512_srli_epi16(sums[0], kNarrowBits), high = _mm512_srli_epi16(sums[1], kNarrowBits);
    _mm512_storeu_si512(out + x, _mm512_packus_epi16(low, high));
  }
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

// --- the horizontal pass ---

// The finished values of a window's sixteen outputs.
template <int kBits, int kBlocks>
MILLRACE_AVX512_INLINE __m512i filter_window(const Line* lines, const PlaneAxis& axis, const std::uint8_t* row) {
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

MILLRACE_AVX512_INLINE void store_four(const __m512i values[4], std::uint8_t* out) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i bytes =
      _mm512_packus_epi16(_mm512_packs_epi32(values[0], values[1]), _mm512_packs_epi32(values[2], values[3]));
  _mm512_storeu_si512(out, _mm512_permutexvar_epi32(order, bytes));
}

// Windows with all lanes go out in fours; what is left of lanes is overwritten by the next window.
template <int kBits, int kBlocks>
MILLRACE_AVX512 void filter_row(const PlaneAxis& axis, const std::uint8_t* row, std::uint8_t* out) {
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

// --- colour ---

struct Rgb {
  __m512i red, green, blue;
};

// As in jpeg/rows_avx2.cc.
MILLRACE_AVX512_INLINE Rgb convert(__m512i y, __m512i cb, __m512i cr) {
  const __m512i red = _mm512_add_epi16(_mm512_mulhrs_epi16(cr, _mm512_set1_epi16(jpeg::kRedOfCr)), cr);
  const __m512i blue =
      _mm512_add_epi16(_mm512_mulhrs_epi16(cb, _mm512_set1_epi16(jpeg::kBlueOfCb)), _mm512_add_epi16(cb, cb));
  const __m512i factors = _mm512_set1_epi32(18734 * 65536 + (-22554 & 0xFFFF));
  const __m512i half = _mm512_set1_epi32(1 << 15);
  const __m512i low = _mm512_dpwssd_epi32(half, _mm512_unpacklo_epi16(cb, cr), factors);
  const __m512i high = _mm512_dpwssd_epi32(half, _mm512_unpackhi_epi16(cb, cr), factors);
  const __m512i both = _mm512_packs_epi32(_mm512_srai_epi32(low, 16), _mm512_srai_epi32(high, 16));
  return {_mm512_add_epi16(y, red), _mm512_add_epi16(y, _mm512_sub_epi16(both, cr)), _mm512_add_epi16(y, blue)};
}

MILLRACE_AVX512 void to_rgb(std::uint8_t* const planes[3], int count) {
  const __m512i zero = _mm512_setzero_si512(), middle = _mm512_set1_epi16(128);
  for (int i = 0; i < count; i += kStep) {
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
}

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

MILLRACE_AVX512 void to_pixels(const std::uint8_t* const planes[3], int count, std::uint8_t* pixels) {
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
