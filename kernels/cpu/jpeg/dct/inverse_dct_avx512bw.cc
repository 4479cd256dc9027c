// The inverse DCT of four blocks at a time, a block a 128-bit lane, for Target::kAvx512Bw.
#include "kernels/cpu/jpeg/dct/inverse_dct.h"

#if defined(__x86_64__)

// g++ 12 takes its own intrinsics' deliberately undefined operands for mistakes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include "kernels/cpu/jpeg/dct/fast_dct.h"

#define MILLRACE_JPEG_TARGET __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt,avx512f,avx512bw,avx512vl,avx512dq")))
#define MILLRACE_JPEG_VECTOR MILLRACE_JPEG_TARGET inline __attribute__((always_inline))

namespace millrace::kernels::jpeg {
namespace {

MILLRACE_JPEG_VECTOR __m512i add_madd(__m512i sum, __m512i a, __m512i b) {
  return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
}

}  // namespace
}  // namespace millrace::kernels::jpeg

#include "kernels/cpu/jpeg/dct/inverse_dct_512_lanes.h"

namespace millrace::kernels::jpeg {
namespace {

struct Half {
  alignas(64) std::uint16_t from[kCoefficients / 2];

  constexpr void put(int to, int coefficient) { from[to] = static_cast<std::uint16_t>(coefficient); }
};
MILLRACE_JPEG_VECTOR Vec ordered(Vec low, Vec high, const Half& half) {
  return _mm512_permutex2var_epi16(low, _mm512_load_si512(half.from), high);
}

#include "kernels/cpu/jpeg/dct/inverse_dct_512_loop.h"

}  // namespace

const InverseDct& avx512bw_inverse_dct() {
  static constexpr InverseDct kTransform{transform<Precision::kExact>, transform<Precision::kFast>};
  return kTransform;
}

}  // namespace millrace::kernels::jpeg

#endif  // __x86_64__
