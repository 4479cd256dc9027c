// The loops with AVX-512. A table of 256 is four registers, which two shuffles look up.
#include <cstring>

#include "kernels/augment/kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

// clang knows no width there.
#if defined(__clang__)
#define MILLRACE_AUGMENT_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")))
#else
#define MILLRACE_AUGMENT_TARGET \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,prefer-vector-width=512")))
#endif

namespace millrace::kernels::augment {
namespace {

MILLRACE_AUGMENT_TARGET void map(const Byte* table, Byte* plane, std::size_t padded) {
  const __m512i t0 = _mm512_loadu_si512(table), t1 = _mm512_loadu_si512(table + 64);
  const __m512i t2 = _mm512_loadu_si512(table + 128), t3 = _mm512_loadu_si512(table + 192);
  for (std::size_t at = 0; at < padded; at += 64) {
    const __m512i in = _mm512_load_si512(plane + at);
    const __m512i low = _mm512_permutex2var_epi8(t0, in, t1), high = _mm512_permutex2var_epi8(t2, in, t3);
    _mm512_store_si512(plane + at, _mm512_mask_blend_epi8(_mm512_movepi8_mask(in), low, high));
  }
}

using Register = __m512i;
constexpr int kLanes = 16;

MILLRACE_AUGMENT_TARGET inline __m512 reciprocal(__m512 value) {
  return _mm512_rcp14_ps(value);
}

MILLRACE_AUGMENT_TARGET inline Register widen(const Byte* at) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
}

MILLRACE_AUGMENT_TARGET inline Register multiply_halves(Register a, Register b) {
  return _mm512_madd_epi16(a, b);
}

// Of eight words.
MILLRACE_AUGMENT_TARGET inline Register look_up(const std::uint32_t* words, Register index) {
  const __m256i table = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words));
  return _mm512_permutexvar_epi32(index, _mm512_broadcast_i64x4(table));
}

#include "kernels/augment/kernels_loop.h"

#include "kernels/augment/hue_loop.h"

constexpr Kernels kKernels = kernels_with(hue);

}  // namespace

const Kernels& avx512_kernels() {
  return kKernels;
}

}  // namespace millrace::kernels::augment

#endif
