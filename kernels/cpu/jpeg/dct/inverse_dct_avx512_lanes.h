// The lanes of inverse_dct_512_lanes.h with Target::kAvx512's instructions: VNNI adds products up.
// Files that include this include <immintrin.h> before it.
#pragma once

#include "kernels/cpu/jpeg/dct/fast_dct.h"

#define MILLRACE_JPEG_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni,avx512dq")))
#define MILLRACE_JPEG_VECTOR MILLRACE_JPEG_TARGET inline __attribute__((always_inline))

namespace millrace::kernels::jpeg {
namespace {

MILLRACE_JPEG_VECTOR __m512i add_madd(__m512i sum, __m512i a, __m512i b) {
  return _mm512_dpwssd_epi32(sum, a, b);
}

}  // namespace
}  // namespace millrace::kernels::jpeg

#include "kernels/cpu/jpeg/dct/inverse_dct_512_lanes.h"
