// The loops with AVX2. A table of 256 is sixteen shuffles.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/augment/kernels.h"
#include "kernels/augment/targets/hue_below.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define MILLRACE_AUGMENT_TARGET __attribute__((target("avx2")))

#define MILLRACE_AUGMENT_VECTOR 32

namespace millrace::kernels::augment {
namespace {

// Of a byte below 128, shuffles take one entry of each part up to its own, and nothing of later ones, where what is
// left of the byte is negative; parts hold what differs from the part before, so that all together are the entry. The
// upper half of the table likewise, with the byte's sign turned.
MILLRACE_AUGMENT_TARGET void map(const Byte* table, Byte* plane, std::size_t padded) {
  __m256i parts[16];
  for (int i = 0; i < 16; ++i) {
    parts[i] = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16 * i)));
  }
  for (const int i : {15, 14, 13, 12, 11, 10, 9, 7, 6, 5, 4, 3, 2, 1})
    parts[i] = _mm256_xor_si256(parts[i], parts[i - 1]);
  const __m256i sixteen = _mm256_set1_epi8(16), sign = _mm256_set1_epi8(-128);
  for (std::size_t at = 0; at < padded; at += 32) {
    auto* const bytes = reinterpret_cast<__m256i*>(plane + at);
    __m256i low = _mm256_load_si256(bytes), high = _mm256_xor_si256(low, sign);
    __m256i out = _mm256_xor_si256(_mm256_shuffle_epi8(parts[0], low), _mm256_shuffle_epi8(parts[8], high));
    for (int i = 1; i < 8; ++i) {
      low = _mm256_subs_epi8(low, sixteen);
      high = _mm256_subs_epi8(high, sixteen);
      out = _mm256_xor_si256(out, _mm256_shuffle_epi8(parts[i], low));
      out = _mm256_xor_si256(out, _mm256_shuffle_epi8(parts[8 + i], high));
    }
    _mm256_store_si256(bytes, out);
  }
}

using Register = __m256i;
constexpr int kLanes = 8;

MILLRACE_AUGMENT_TARGET inline __m256 reciprocal(__m256 value) {
  return _mm256_rcp_ps(value);
}

MILLRACE_AUGMENT_TARGET inline Register widen(const Byte* at) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)));
}

MILLRACE_AUGMENT_TARGET inline Register multiply_halves(Register a, Register b) {
  return _mm256_madd_epi16(a, b);
}

// Of eight words.
MILLRACE_AUGMENT_TARGET inline Register look_up(const std::uint32_t* words, Register index) {
  return _mm256_permutevar8x32_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(words)), index);
}

#include "kernels/augment/targets/geometry_loop.h"
#include "kernels/augment/targets/kernels_loop.h"

#include "kernels/augment/targets/hue_loop.h"

// Where in each of three registers a byte is, or none.
struct ThreeOrder {
  alignas(32) Byte at[3][3][32];
};

constexpr ThreeOrder make_order(bool splits) {
  ThreeOrder order{};
  for (unsigned to = 0; to < 3; ++to) {
    for (unsigned i = 0; i < 16; ++i) {
      const unsigned byte = splits ? 3 * i + to : 16 * to + i;
      const unsigned from = splits ? byte / 16 : byte % 3, index = splits ? byte % 16 : byte / 3;
      for (unsigned part = 0; part < 3; ++part) {
        order.at[to][part][i] = order.at[to][part][16 + i] = static_cast<Byte>(part == from ? index : 128);
      }
    }
  }
  return order;
}

constexpr ThreeOrder kSplitOrder = make_order(true), kMergeOrder = make_order(false);

MILLRACE_AUGMENT_INLINE __m256i ordered(const ThreeOrder& order, std::size_t to, const __m256i* in) {
  __m256i parts[3];
  for (std::size_t part = 0; part < 3; ++part) {
    const auto* const index = reinterpret_cast<const __m256i*>(order.at[to][part]);
    parts[part] = _mm256_shuffle_epi8(in[part], _mm256_load_si256(index));
  }
  return _mm256_or_si256(_mm256_or_si256(parts[0], parts[1]), parts[2]);
}

// 16 pixels in each half.
MILLRACE_AUGMENT_TARGET void split_pixels(const Byte* pixels, std::size_t count, const Planes& planes, std::size_t at) {
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    __m256i in[3];
    for (std::size_t part = 0; part < 3; ++part) {
      const Byte* const from = pixels + 3 * i + 16 * part;
      in[part] =
          _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(from + 48), reinterpret_cast<const __m128i*>(from));
    }
    for (std::size_t c = 0; c < 3; ++c) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(planes.plane[c] + at + i), ordered(kSplitOrder, c, in));
    }
  }
  split(pixels + 3 * i, count - i, planes, at + i);
}

MILLRACE_AUGMENT_TARGET void merge_pixels(const Planes& planes, std::size_t at, std::size_t count, Byte* pixels) {
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    __m256i in[3];
    for (std::size_t c = 0; c < 3; ++c) {
      in[c] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(planes.plane[c] + at + i));
    }
    for (std::size_t part = 0; part < 3; ++part) {
      Byte* const to = pixels + 3 * i + 16 * part;
      _mm256_storeu2_m128i(reinterpret_cast<__m128i*>(to + 48), reinterpret_cast<__m128i*>(to),
                           ordered(kMergeOrder, part, in));
    }
  }
  merge(planes, at + i, count - i, pixels + 3 * i);
}

constexpr Kernels make_kernels() {
  Kernels kernels = kernels_with(map, hue);
  kernels.split = split_pixels;
  kernels.merge = merge_pixels;
  return kernels;
}

constexpr Kernels kKernels = make_kernels();

}  // namespace

const Kernels& avx2_kernels() {
  return kKernels;
}

}  // namespace millrace::kernels::augment

#endif
