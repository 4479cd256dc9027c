// Storing with AVX-512 BW: elements are computed as AVX2 does it, twice as many at once. AVX2 takes pixels apart.
#include "kernels/cpu/store_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define MILLRACE_AVX512BW __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq")))

namespace millrace::kernels {
namespace {

constexpr int kFloats = 16;

MILLRACE_AVX512BW inline __m512 as_floats(const std::uint8_t* in) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in))));
}

struct Values {
  __m512 factor, offset;

  MILLRACE_AVX512BW __m512 at(const std::uint8_t* in) const { return _mm512_fmadd_ps(as_floats(in), factor, offset); }
};

struct ToFloat16 {
  MILLRACE_AVX512BW static void store(__m512 low, __m512 high, std::uint16_t* out) {
    auto* const to = reinterpret_cast<__m256i*>(out);
    _mm256_storeu_si256(to, _mm512_cvtps_ph(low, _MM_FROUND_TO_NEAREST_INT));
    _mm256_storeu_si256(to + 1, _mm512_cvtps_ph(high, _MM_FROUND_TO_NEAREST_INT));
  }
};

struct ToBfloat16 {
  MILLRACE_AVX512BW static void store(__m512 low, __m512 high, std::uint16_t* out) {
    const __m512i words = _mm512_packus_epi32(rounded(low), rounded(high));
    _mm512_storeu_si512(out, _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), words));
  }

 private:
  // Halves go to the even one. No NaN comes here.
  MILLRACE_AVX512BW static __m512i rounded(__m512 value) {
    const __m512i bits = _mm512_castps_si512(value);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    return _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF))), 16);
  }
};

// The last elements overlap those before them where the count is no multiple of what is made at once; so in compute32.
template <class Element>
MILLRACE_AVX512BW void compute16(const StoreLine& line, const std::uint8_t* in, int count, std::uint16_t* out) {
  constexpr int kAtOnce = 2 * kFloats;
  const Values values{_mm512_set1_ps(line.factor), _mm512_set1_ps(line.offset)};
  for (int step = 0; step < count; step += kAtOnce) {
    const int x = step + kAtOnce <= count ? step : count - kAtOnce;
    Element::store(values.at(in + x), values.at(in + x + kFloats), out + x);
  }
}

void widen16(const StorePlane& plane, const std::uint8_t* in, int count, std::uint16_t* out) {
  const StoreLine& line = plane.line;
  if (line.rounding == StoreLine::Rounding::kNone || count < 2 * kFloats)
    return avx2_store_kernels().widen16(plane, in, count, out);
  line.rounding == StoreLine::Rounding::kFloat16 ? compute16<ToFloat16>(line, in, count, out)
                                                 : compute16<ToBfloat16>(line, in, count, out);
}

struct Reciprocal {
  __m512 factor, rest;

  MILLRACE_AVX512BW __m512 times(__m512 x) const { return _mm512_fmadd_ps(x, factor, _mm512_mul_ps(x, rest)); }
};

MILLRACE_AVX512BW void compute32(const StoreSteps& steps, const std::uint8_t* in, int count, std::uint32_t* out) {
  const Reciprocal unit{_mm512_set1_ps(steps.unit), _mm512_set1_ps(steps.unit_rest)};
  const Reciprocal deviation{_mm512_set1_ps(steps.factor), _mm512_set1_ps(steps.factor_rest)};
  const __m512 mean = _mm512_set1_ps(steps.mean);
  for (int step = 0; step < count; step += kFloats) {
    const int x = step + kFloats <= count ? step : count - kFloats;
    const __m512 values = deviation.times(_mm512_sub_ps(unit.times(as_floats(in + x)), mean));
    _mm512_storeu_ps(reinterpret_cast<float*>(out + x), values);
  }
}

void widen32(const StorePlane& plane, const std::uint8_t* in, int count, std::uint32_t* out) {
  if (!plane.steps.are_right || count < kFloats) return avx2_store_kernels().widen32(plane, in, count, out);
  compute32(plane.steps, in, count, out);
}

}  // namespace

const StoreKernels& avx512bw_store_kernels() {
  static const StoreKernels kKernels{avx2_store_kernels().split, widen16, widen32};
  return kKernels;
}

}  // namespace millrace::kernels

#endif  // __x86_64__
