// The inverse DCT of four blocks at a time, a block a 128-bit lane. VBMI puts coefficients in order as bytes.
#include "kernels/cpu/jpeg/dct/inverse_dct.h"

#if defined(__x86_64__)

// g++ 12 takes its own intrinsics' deliberately undefined operands for mistakes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include "kernels/cpu/jpeg/dct/inverse_dct_avx512_lanes.h"

namespace millrace::kernels::jpeg {
namespace {

struct Half {
  alignas(64) std::uint8_t from[kCoefficients];
  std::uint64_t is_second = 0;

  constexpr void put(int to, int coefficient) {
    for (int byte = 0; byte < 2; ++byte) {
      from[2 * to + byte] = static_cast<std::uint8_t>(2 * (coefficient % 32) + byte);
      is_second |= std::uint64_t{coefficient >= 32} << (2 * to + byte);
    }
  }
};
MILLRACE_JPEG_VECTOR Vec ordered(Vec low, Vec high, const Half& half) {
  const Vec from = _mm512_load_si512(half.from);
  return _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(from, low), half.is_second, from, high);
}

#include "kernels/cpu/jpeg/dct/inverse_dct_512_loop.h"

}  // namespace

const InverseDct& avx512_inverse_dct() {
  static constexpr InverseDct kTransform{transform<Precision::kExact>, transform<Precision::kFast>};
  return kTransform;
}

}  // namespace millrace::kernels::jpeg

#endif  // __x86_64__
