// The loops with AVX2. A table of 256 is sixteen shuffles: each takes the bytes whose high half is its own.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/augment/hue_below.h"
#include "kernels/augment/kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define MILLRACE_AUGMENT_TARGET __attribute__((target("avx2")))

#define MILLRACE_AUGMENT_VECTOR 32

namespace millrace::kernels::augment {
namespace {

// Subtracting 16 a part makes the bytes of that part 0..15; adding 0x70 with saturation sets the sign, which a shuffle
// takes for zero, of all others.
MILLRACE_AUGMENT_TARGET void map(const Byte* table, Byte* plane, std::size_t padded) {
  const __m256i bias = _mm256_set1_epi8(0x70);
  __m256i parts[16];
  for (int i = 0; i < 16; ++i) {
    parts[i] = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16 * i)));
  }
  for (std::size_t at = 0; at < padded; at += 32) {
    auto* const bytes = reinterpret_cast<__m256i*>(plane + at);
    const __m256i in = _mm256_load_si256(bytes);
    __m256i out = _mm256_setzero_si256();
    for (int i = 0; i < 16; ++i) {
      const __m256i index = _mm256_sub_epi8(in, _mm256_set1_epi8(static_cast<char>(16 * i)));
      out = _mm256_or_si256(out, _mm256_shuffle_epi8(parts[i], _mm256_adds_epu8(index, bias)));
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

#include "kernels/augment/geometry_loop.h"
#include "kernels/augment/kernels_loop.h"

#include "kernels/augment/hue_loop.h"

constexpr Kernels kKernels = kernels_with(hue);

}  // namespace

const Kernels& avx2_kernels() {
  return kKernels;
}

}  // namespace millrace::kernels::augment

#endif
