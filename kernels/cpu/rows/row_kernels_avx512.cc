// Resampling with AVX-512: the vertical pass, and taking rows as they are. A weight of 24 bits is split into two words
// (PairWeights), so that one vpdpwssd sums two taps of sixteen outputs for one half; a shift between the halves puts
// the sum together again. Exact: every step is modulo 2^32, as the definition's sum is.
#include "kernels/cpu/rows/row_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>
#include <iterator>

#include "kernels/cpu/rows/row_columns_avx512.h"

#define MILLRACE_ROWS_TARGET MILLRACE_AVX512
#define MILLRACE_ROWS_INLINE MILLRACE_AVX512_INLINE

namespace millrace::kernels {
namespace {

constexpr int kStartOfHigh = 1 << (kPrecisionBits - 1 - kLowBits);

MILLRACE_AVX512_INLINE __m512i added_products(__m512i sum, __m512i words, __m512i weights) {
  return _mm512_dpwssd_epi32(sum, words, weights);
}
MILLRACE_AVX512_INLINE __m512i first_products(__m512i words, __m512i weights) {
  return added_products(_mm512_set1_epi32(kStartOfHigh), words, weights);
}

// The dwords that unpacking within 128-bit lanes, or packing, leaves in this order come out (or go in) as 0, 1, 2, ...
MILLRACE_ROWS_INLINE __m512i lane_order() {
  return _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
}

// Four vectors of sums of 64 samples of a row to 64 bytes.
template <bool kClamps>
MILLRACE_AVX512_INLINE __m512i finish_bytes(const __m512i sums[4]) {
  if constexpr (kClamps) {
    __m512i values[4];
    for (int i = 0; i < 4; ++i) values[i] = _mm512_srai_epi32(sums[i], kPrecisionBits);
    const __m512i bytes =
        _mm512_packus_epi16(_mm512_packs_epi32(values[0], values[1]), _mm512_packs_epi32(values[2], values[3]));
    return _mm512_permutexvar_epi32(lane_order(), bytes);
  } else {
    return _mm512_permutexvar_epi8(transposed_bytes(), values_by_lane(sums));
  }
}

#include "kernels/cpu/rows/row_filter_loop.h"

}  // namespace

const RowKernels& avx512_row_kernels() {
  static constexpr RowKernels kKernels{pack_columns_avx512,    pack_pairs, horizontal_avx512,
                                       horizontal_rows_avx512, interleave, vertical};
  return kKernels;
}

}  // namespace millrace::kernels

#endif  // __x86_64__
