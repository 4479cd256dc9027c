// Looking for the cheapest shape with AVX2, four at a time.
#include "kernels/packed/shape_search.h"

#if defined(__x86_64__)

#include <immintrin.h>

namespace millrace::kernels::packed {
namespace {

__attribute__((target("avx2"))) inline __m256i load(const std::uint64_t* four) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(four));
}

}  // namespace

__attribute__((target("avx2"))) int find_shape_avx2(const Need& need) {
  const __m256i values = _mm256_set1_epi64x(static_cast<long long>(values_in_lanes(need.values)));
  const __m256i wanted = _mm256_set1_epi64x(static_cast<long long>(a_byte_each(need.widths)));
  const __m256i zero = _mm256_setzero_si256(), ones = _mm256_set1_epi16(1), raw = _mm256_set1_epi64x(kRawCost);
  __m256i best = raw;
  const int first = kCandidates.first[need.bitmap_bytes];
  // Shapes before `first` are cheaper, but have too few bytes of bitmap: the first four may have some of them.
  __m256i too_short = _mm256_cmpgt_epi64(_mm256_set1_epi64x(first & 3), _mm256_set_epi64x(3, 2, 1, 0));
  for (std::size_t i = static_cast<std::size_t>(first & ~3); i < 256; i += 4, too_short = zero) {
    const __m256i lacking = _mm256_subs_epu8(wanted, load(kCandidates.widths.data() + i));
    const __m256i holds = _mm256_andnot_si256(too_short, _mm256_cmpeq_epi64(lacking, zero));
    const __m256i products = _mm256_maddubs_epi16(load(kCandidates.costs.data() + i), values);
    const __m256i halves = _mm256_madd_epi16(products, ones);
    const __m256i bits = _mm256_add_epi32(halves, _mm256_srli_epi64(halves, 32));
    const __m256i above = _mm256_srli_epi64(_mm256_slli_epi64(bits, 32), 24);
    const __m256i cost = _mm256_add_epi64(above, load(kCandidates.base.data() + i));
    best = _mm256_min_epu32(best, _mm256_blendv_epi8(raw, cost, holds));
  }
  __m128i least = _mm_min_epu32(_mm256_castsi256_si128(best), _mm256_extracti128_si256(best, 1));
  least = _mm_min_epu32(least, _mm_unpackhi_epi64(least, least));
  return _mm_cvtsi128_si32(least) & 255;
}

}  // namespace millrace::kernels::packed

#endif
