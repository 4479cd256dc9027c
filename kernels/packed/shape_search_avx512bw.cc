// Looking for the cheapest shape for Target::kAvx512Bw.
#include "kernels/packed/shape_search.h"

#if defined(__x86_64__)

// g++ 12 takes its own intrinsics' deliberately undefined operands for mistakes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#define MILLRACE_SEARCH_TARGET __attribute__((target("avx2,avx512f,avx512bw,avx512vl,avx512dq")))

namespace millrace::kernels::packed {
namespace {

// At most 8 values of 12 bits: words hold the sums of two.
MILLRACE_SEARCH_TARGET inline __attribute__((always_inline)) __m512i sums_of_four(__m512i values, __m512i costs) {
  return _mm512_madd_epi16(_mm512_maddubs_epi16(values, costs), _mm512_set1_epi16(1));
}

#include "kernels/packed/shape_search_512_loop.h"

}  // namespace

MILLRACE_SEARCH_TARGET int find_shape_avx512bw(const Need& need) {
  return cheapest_for(need);
}

}  // namespace millrace::kernels::packed

#endif
