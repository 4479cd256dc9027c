// The loops with AVX-512. A table of 256 is four registers, which two shuffles look up.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/augment/hue_below.h"
#include "kernels/augment/kernels.h"

#if defined(__x86_64__)

// g++ 12 takes its own intrinsics' deliberately undefined operands for mistakes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

// clang knows no width there.
#if defined(__clang__)
#define MILLRACE_AUGMENT_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512vnni")))
#else
#define MILLRACE_AUGMENT_TARGET \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512vnni,prefer-vector-width=512")))
#endif

#define MILLRACE_AUGMENT_VECTOR 64

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

#include "kernels/augment/geometry_loop.h"
#include "kernels/augment/kernels_loop.h"

#include "kernels/augment/colour_avx512.h"
#include "kernels/augment/geometry_avx512.h"
#include "kernels/augment/hue_avx512.h"

constexpr Kernels make_kernels() {
  Kernels kernels = kernels_with(hue_bytes);
  kernels.split = split_pixels;
  kernels.merge = merge_pixels;
  kernels.grey = grey_bytes;
  kernels.grey_sum = sum_of_grey;
  kernels.prepare = prepare_tables;
  kernels.saturate = saturate_bytes;
  kernels.blend = blend_bytes;
  kernels.copy_fixed = copy_fixed_gathered;
  kernels.sample = sample_gathered;
  return kernels;
}

constexpr Kernels kKernels = make_kernels();

}  // namespace

const Kernels& avx512_kernels() {
  return kKernels;
}

}  // namespace millrace::kernels::augment

#endif
