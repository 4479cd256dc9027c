// PNG filters with AVX-512 as Target::kAvx512Bw means it, which selects in one cycle.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/png/unfilter_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define MILLRACE_PNG_TARGET __attribute__((target("avx2,avx512f,avx512bw,avx512vl")))

namespace millrace::kernels::png {
namespace {

MILLRACE_PNG_TARGET inline __attribute__((always_inline)) __m128i select(__m128i mask, __m128i yes, __m128i no) {
  return _mm_ternarylogic_epi32(mask, yes, no, 0xCA);
}

#include "kernels/cpu/png/unfilter_loop.h"

}  // namespace

const RowFunctions& avx512_row_functions() {
  return kFunctions;
}

}  // namespace millrace::kernels::png

#endif
