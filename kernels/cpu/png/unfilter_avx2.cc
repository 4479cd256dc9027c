// PNG filters with AVX2.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/png/unfilter_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define MILLRACE_PNG_TARGET __attribute__((target("avx2")))

namespace millrace::kernels::png {
namespace {

MILLRACE_PNG_TARGET inline __attribute__((always_inline)) __m128i select(__m128i mask, __m128i yes, __m128i no) {
  return _mm_blendv_epi8(no, yes, mask);
}

#include "kernels/cpu/png/unfilter_loop.h"

}  // namespace

const RowFunctions& avx2_row_functions() {
  return kFunctions;
}

}  // namespace millrace::kernels::png

#endif
