// The plane kernels with AVX-512 BW, 64 samples at a time.
#include "kernels/cpu/plane/plane_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "kernels/cpu/jpeg/rows.h"

#define MILLRACE_PLANE_TARGET __attribute__((target("avx2,avx512f,avx512bw,avx512vl,avx512dq")))
#define MILLRACE_PLANE_INLINE MILLRACE_PLANE_TARGET inline __attribute__((always_inline))

namespace millrace::kernels {
namespace {

constexpr WindowShape kShape{4, 16, 4};

MILLRACE_PLANE_INLINE __m512i added_products(__m512i sum, __m512i words, __m512i weights) {
  return _mm512_add_epi32(sum, _mm512_madd_epi16(words, weights));
}

#include "kernels/cpu/plane/plane_kernels_loop.h"

// --- the horizontal pass ---

MILLRACE_PLANE_INLINE __m256i load_two(const std::uint8_t* low, const std::uint8_t* high) {
  const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(low));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(first), _mm_loadu_si128(reinterpret_cast<const __m128i*>(high)),
                                 1);
}
MILLRACE_PLANE_INLINE __m512i load_four(const std::uint8_t* const* at, int skipped) {
  const __m512i low = _mm512_castsi256_si512(load_two(at[0] + skipped, at[1] + skipped));
  return _mm512_inserti64x4(low, load_two(at[2] + skipped, at[3] + skipped), 1);
}

// The sums of four windows' outputs, as plane_kernels_avx2.cc has them of two.
template <int kBits, int kBlocks>
MILLRACE_PLANE_INLINE __m512i filter_four(const Line* lines, const PlaneAxis& axis, const std::uint8_t* const* at) {
  const __m512i indices = _mm512_load_si512(lines++);
  const __m512i times_128 = _mm512_set1_epi16(128), ones = _mm512_set1_epi16(1);
  __m512i sum = _mm512_setzero_si512();
  const int blocks = kBlocks > 0 ? kBlocks : axis.blocks;
  for (int b = 0, skipped = 0; b < blocks; ++b, skipped += 4 * axis.channels) {
    const __m512i samples = _mm512_shuffle_epi8(load_four(at, skipped), indices);
    if constexpr (kBits != kNarrowBits)
      sum = added_products(sum, _mm512_maddubs_epi16(samples, _mm512_load_si512(lines++)), times_128);
    sum = added_products(sum, _mm512_maddubs_epi16(samples, _mm512_load_si512(lines++)), ones);
  }
  return sum;
}

// Rounded and shifted, as words; narrow sums are words with the rounding, too.
template <int kBits>
MILLRACE_PLANE_INLINE __m512i rounded_words(__m512i first, __m512i second) {
  if constexpr (kBits == kNarrowBits)
    return _mm512_srli_epi16(_mm512_add_epi16(_mm512_packs_epi32(first, second), _mm512_set1_epi16(kNarrowHalf)),
                             kBits);
  const __m512i half = _mm512_set1_epi32(kWideHalf);
  return _mm512_packs_epi32(_mm512_srai_epi32(_mm512_add_epi32(first, half), kBits),
                            _mm512_srai_epi32(_mm512_add_epi32(second, half), kBits));
}

constexpr int kWindows = 4;

// Windows with all lanes go out in sixteens and an eight; what is left of lanes is overwritten by the next window.
template <int kBits, int kBlocks>
MILLRACE_PLANE_TARGET void filter_row(const PlaneAxis& axis, const std::uint8_t* row, std::uint8_t* out) {
  const Line* lines = axis.lines.data();
  const int stride = axis.vectors(), count = static_cast<int>(axis.windows.size());
  const PlaneAxis::Window* window = axis.windows.data();
  const auto next = [&](const PlaneAxis::Window* first, int left) MILLRACE_PLANE_TARGET {
    const std::uint8_t* at[kWindows];
    for (int w = 0; w < kWindows; ++w) at[w] = row + first[w < left ? w : 0].source;
    const __m512i sums = filter_four<kBits, kBlocks>(lines, axis, at);
    lines += stride;
    return sums;
  };
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  int i = 0;
  for (; i + 4 * kWindows <= axis.full_windows; i += 4 * kWindows, window += 4 * kWindows) {
    __m512i sums[4];
    for (int v = 0; v < 4; ++v) sums[v] = next(window + v * kWindows, kWindows);
    const __m512i bytes =
        _mm512_packus_epi16(rounded_words<kBits>(sums[0], sums[1]), rounded_words<kBits>(sums[2], sums[3]));
    _mm512_storeu_si512(out + window->output, _mm512_permutexvar_epi32(order, bytes));
  }
  if (i + 2 * kWindows <= axis.full_windows) {
    const __m512i first = next(window, kWindows),
                  words = rounded_words<kBits>(first, next(window + kWindows, kWindows));
    const __m512i bytes = _mm512_permutexvar_epi32(order, _mm512_packus_epi16(words, words));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + window->output), _mm512_castsi512_si256(bytes));
    i += 2 * kWindows, window += 2 * kWindows;
  }
  for (; i < count; i += kWindows, window += kWindows) {
    const int left = std::min(kWindows, count - i);
    const __m512i sums = next(window, left), words = rounded_words<kBits>(sums, sums);
    alignas(64) std::uint8_t bytes[64];
    _mm512_store_si512(bytes, _mm512_packus_epi16(words, words));
    for (int w = 0; w < left; ++w) std::memcpy(out + window[w].output, bytes + 16 * w, 4);
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

// For each 16 bytes of 16 pixels and each channel: which sample goes where; -128 leaves a zero.
struct MixTable {
  alignas(16) std::int8_t from[3][3][16];
};
constexpr MixTable kMix = [] {
  MixTable table{};
  for (int part = 0; part < 3; ++part) {
    for (int channel = 0; channel < 3; ++channel) {
      for (int i = 0; i < 16; ++i) {
        const int at = 16 * part + i;
        table.from[part][channel][i] = static_cast<std::int8_t>(at % 3 == channel ? at / 3 : -128);
      }
    }
  }
  return table;
}();

// Lane l of `parts` has a part of the 16 pixels from 16 * l on; the parts of a lane belong together.
MILLRACE_PLANE_INLINE void store_parts(const __m512i parts[3], std::uint8_t* pixels) {
  const __m512i first = _mm512_permutex2var_epi64(parts[0], _mm512_setr_epi64(0, 1, 8, 9, 0, 0, 2, 3), parts[1]);
  const __m512i second = _mm512_permutex2var_epi64(parts[1], _mm512_setr_epi64(2, 3, 10, 11, 0, 0, 4, 5), parts[2]);
  const __m512i third = _mm512_permutex2var_epi64(parts[2], _mm512_setr_epi64(4, 5, 14, 15, 0, 0, 6, 7), parts[0]);
  _mm512_storeu_si512(pixels, _mm512_permutex2var_epi64(first, _mm512_setr_epi64(0, 1, 2, 3, 8, 9, 6, 7), parts[2]));
  _mm512_storeu_si512(pixels + 64,
                      _mm512_permutex2var_epi64(second, _mm512_setr_epi64(0, 1, 2, 3, 12, 13, 6, 7), parts[0]));
  _mm512_storeu_si512(pixels + 128,
                      _mm512_permutex2var_epi64(third, _mm512_setr_epi64(0, 1, 2, 3, 14, 15, 6, 7), parts[1]));
}

MILLRACE_PLANE_TARGET void to_pixels(const std::uint8_t* const planes[3], int count, std::uint8_t* pixels) {
  for (int i = 0; i < count; i += kStep, pixels += 3 * kStep) {
    __m512i parts[3];
    for (int part = 0; part < 3; ++part) {
      __m512i mixed = _mm512_setzero_si512();
      for (int c = 0; c < 3; ++c) {
        const __m128i order = _mm_load_si128(reinterpret_cast<const __m128i*>(kMix.from[part][c]));
        mixed = _mm512_or_si512(mixed,
                                _mm512_shuffle_epi8(_mm512_loadu_si512(planes[c] + i), _mm512_broadcast_i32x4(order)));
      }
      parts[part] = mixed;
    }
    store_parts(parts, pixels);
  }
}

}  // namespace

const PlaneKernels& avx512bw_plane_kernels() {
  static constexpr PlaneKernels kKernels{&kShape, vertical, vertical_narrow, horizontal, to_rgb, to_pixels};
  return kKernels;
}

}  // namespace millrace::kernels

#endif  // __x86_64__
