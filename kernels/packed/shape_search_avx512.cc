// Looking for the cheapest shape with AVX-512, eight at a time.
#include "kernels/packed/shape_search.h"

#if defined(__x86_64__)

// g++ 12 takes its own intrinsics' deliberately undefined operands for mistakes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

namespace millrace::kernels::packed {

__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni"))) int find_shape_avx512(const Need& need) {
  const __m512i values = _mm512_set1_epi64(static_cast<long long>(values_in_lanes(need.values)));
  const __m512i wanted = _mm512_set1_epi64(static_cast<long long>(a_byte_each(need.widths)));
  __m512i best = _mm512_set1_epi64(static_cast<long long>(kRawCost));
  const int first = kCandidates.first[need.bitmap_bytes];
  auto long_enough = static_cast<__mmask8>(0xFFU << (first & 7));
  for (int i = first & ~7; i < 256; i += 8, long_enough = 0xFF) {
    const __m512i lacking = _mm512_subs_epu8(wanted, _mm512_load_si512(kCandidates.widths.data() + i));
    const __mmask8 holds = long_enough & _mm512_testn_epi64_mask(lacking, lacking);
    const __m512i halves =
        _mm512_dpbusd_epi32(_mm512_setzero_si512(), values, _mm512_load_si512(kCandidates.costs.data() + i));
    const __m512i bits = _mm512_add_epi32(halves, _mm512_srli_epi64(halves, 32));
    const __m512i cost = _mm512_add_epi64(_mm512_srli_epi64(_mm512_slli_epi64(bits, 32), 24),
                                          _mm512_load_si512(kCandidates.base.data() + i));
    best = _mm512_mask_min_epu64(best, holds, best, cost);
  }
  return static_cast<int>(_mm512_reduce_min_epu64(best) & 255);
}

}  // namespace millrace::kernels::packed

#endif
