// Looking for the cheapest shape with AVX-512: VNNI multiplies costs.
#include "kernels/packed/shape_search.h"

#if defined(__x86_64__)

// g++ 12 takes its own intrinsics' deliberately undefined operands for mistakes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#define MILLRACE_SEARCH_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))

namespace millrace::kernels::packed {
namespace {

MILLRACE_SEARCH_TARGET inline __attribute__((always_inline)) __m512i sums_of_four(__m512i values, __m512i costs) {
  return _mm512_dpbusd_epi32(_mm512_setzero_si512(), values, costs);
}

#include "kernels/packed/shape_search_512_loop.h"

}  // namespace

MILLRACE_SEARCH_TARGET int find_shape_avx512(const Need& need) {
  return cheapest_for(need);
}

}  // namespace millrace::kernels::packed

#endif
