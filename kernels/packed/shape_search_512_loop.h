// Looking for the cheapest shape with 512-bit vectors, eight at a time, for a file that has defined
// MILLRACE_SEARCH_TARGET and, in the anonymous namespace where it includes this,
//   sums_of_four(values, costs): dword by dword, bytes multiplied and added up
#pragma once

MILLRACE_SEARCH_TARGET inline __attribute__((always_inline)) int cheapest_for(const Need& need) {
  const __m512i values = _mm512_set1_epi64(static_cast<long long>(values_in_lanes(need.values)));
  const __m512i wanted = _mm512_set1_epi64(static_cast<long long>(a_byte_each(need.widths)));
  __m512i best = _mm512_set1_epi64(static_cast<long long>(kRawCost));
  const int first = kCandidates.first[need.bitmap_bytes];
  auto long_enough = static_cast<__mmask8>(0xFFU << (first & 7));
  for (int i = first & ~7; i < 256; i += 8, long_enough = 0xFF) {
    const __m512i lacking = _mm512_subs_epu8(wanted, _mm512_load_si512(kCandidates.widths.data() + i));
    const __mmask8 holds = long_enough & _mm512_testn_epi64_mask(lacking, lacking);
    const __m512i halves = sums_of_four(values, _mm512_load_si512(kCandidates.costs.data() + i));
    const __m512i bits = _mm512_add_epi32(halves, _mm512_srli_epi64(halves, 32));
    const __m512i cost = _mm512_add_epi64(_mm512_srli_epi64(_mm512_slli_epi64(bits, 32), 24),
                                          _mm512_load_si512(kCandidates.base.data() + i));
    best = _mm512_mask_min_epu64(best, holds, best, cost);
  }
  return static_cast<int>(_mm512_reduce_min_epu64(best) & 255);
}
