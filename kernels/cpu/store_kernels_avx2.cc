// Storing with AVX2: byte shuffles take pixels apart. A table of 256 is too large for them, and a scalar look-up takes
// two loads and a store an element: so elements are computed, where the table says how.
#include "kernels/cpu/store_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define MILLRACE_AVX2 __attribute__((target("avx2,fma,f16c")))

namespace millrace::kernels {
namespace {

constexpr int kPixels = 16;

// For each channel and each of the three 16-byte parts of 16 pixels: which byte of the part goes where; -128 leaves a
// zero.
struct SplitTable {
  alignas(16) std::int8_t index[3][3][16];
};

constexpr SplitTable make_table(bool mirrored) {
  SplitTable table{};
  for (int c = 0; c < 3; ++c) {
    for (int part = 0; part < 3; ++part) {
      for (int i = 0; i < kPixels; ++i) {
        const int byte = 3 * (mirrored ? kPixels - 1 - i : i) + c - 16 * part;
        table.index[c][part][i] = static_cast<std::int8_t>(byte >= 0 && byte < 16 ? byte : -128);
      }
    }
  }
  return table;
}

constexpr SplitTable kForward = make_table(false);
constexpr SplitTable kMirrored = make_table(true);

MILLRACE_AVX2 inline void split_16(const std::uint8_t* pixels, const SplitTable& table, int at,
                                   std::uint8_t* const planes[3]) {
  const auto* in = reinterpret_cast<const __m128i*>(pixels);
  for (int c = 0; c < 3; ++c) {
    __m128i plane = _mm_setzero_si128();
    for (int part = 0; part < 3; ++part) {
      const __m128i index = _mm_load_si128(reinterpret_cast<const __m128i*>(table.index[c][part]));
      plane = _mm_or_si128(plane, _mm_shuffle_epi8(_mm_loadu_si128(in + part), index));
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(planes[c] + at), plane);
  }
}

// 16 pixels a lane: those from `low` on below, those from `high` on above.
MILLRACE_AVX2 inline void split_32(const std::uint8_t* low, const std::uint8_t* high, const __m256i index[3][3], int at,
                                   std::uint8_t* const planes[3]) {
  __m256i parts[3];
  for (int part = 0; part < 3; ++part) {
    const __m128i below = _mm_loadu_si128(reinterpret_cast<const __m128i*>(low) + part);
    const __m128i above = _mm_loadu_si128(reinterpret_cast<const __m128i*>(high) + part);
    parts[part] = _mm256_inserti128_si256(_mm256_castsi128_si256(below), above, 1);
  }
  for (int c = 0; c < 3; ++c) {
    const __m256i first = _mm256_shuffle_epi8(parts[0], index[c][0]);
    const __m256i second = _mm256_shuffle_epi8(parts[1], index[c][1]);
    const __m256i third = _mm256_shuffle_epi8(parts[2], index[c][2]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(planes[c] + at),
                        _mm256_or_si256(_mm256_or_si256(first, second), third));
  }
}

// The last pixels overlap those before them where the count is no multiple of what is split at once.
MILLRACE_AVX2 void split(const std::uint8_t* pixels, int count, Flip flip, std::uint8_t* const planes[3]) {
  if (count < kPixels) return scalar_store_kernels().split(pixels, count, flip, planes);
  const bool mirrored = flip == Flip::kHorizontal;
  const SplitTable& table = mirrored ? kMirrored : kForward;
  if (count < 2 * kPixels) {
    for (const int x : {0, count - kPixels})
      split_16(pixels + 3 * static_cast<std::ptrdiff_t>(x), table, mirrored ? count - kPixels - x : x, planes);
    return;
  }
  __m256i index[3][3];
  for (int c = 0; c < 3; ++c) {
    for (int part = 0; part < 3; ++part)
      index[c][part] =
          _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(table.index[c][part])));
  }
  constexpr int kAtOnce = 2 * kPixels;
  std::uint8_t* const out[3] = {planes[0], planes[1], planes[2]};
  for (int step = 0; step < count; step += kAtOnce) {
    const int x = step + kAtOnce <= count ? step : count - kAtOnce;
    const std::uint8_t* const first = pixels + 3 * static_cast<std::ptrdiff_t>(x);
    const std::uint8_t* const second = first + 3 * kPixels;
    mirrored ? split_32(second, first, index, count - kAtOnce - x, out) : split_32(first, second, index, x, out);
  }
}

// Eight of them.
MILLRACE_AVX2 inline __m256 as_floats(const std::uint8_t* in) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(in))));
}

struct Values {
  __m256 factor, offset;

  MILLRACE_AVX2 __m256 at(const std::uint8_t* in) const { return _mm256_fmadd_ps(as_floats(in), factor, offset); }
};

struct ToFloat16 {
  MILLRACE_AVX2 static void store(__m256 low, __m256 high, std::uint16_t* out) {
    auto* const to = reinterpret_cast<__m128i*>(out);
    _mm_storeu_si128(to, _mm256_cvtps_ph(low, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128(to + 1, _mm256_cvtps_ph(high, _MM_FROUND_TO_NEAREST_INT));
  }
};

struct ToBfloat16 {
  MILLRACE_AVX2 static void store(__m256 low, __m256 high, std::uint16_t* out) {
    const __m256i words = _mm256_packus_epi32(rounded(low), rounded(high));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_permute4x64_epi64(words, 0xD8));
  }

 private:
  // Halves go to the even one. No NaN comes here.
  MILLRACE_AVX2 static __m256i rounded(__m256 value) {
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    return _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF))), 16);
  }
};

template <class Element>
MILLRACE_AVX2 void compute16(const StoreLine& line, const std::uint8_t* in, int count, std::uint16_t* out) {
  const Values values{_mm256_set1_ps(line.factor), _mm256_set1_ps(line.offset)};
  for (int step = 0; step < count; step += kPixels) {
    const int x = step + kPixels <= count ? step : count - kPixels;
    Element::store(values.at(in + x), values.at(in + x + kPixels / 2), out + x);
  }
}

void widen16(const StorePlane& plane, const std::uint8_t* in, int count, std::uint16_t* out) {
  const StoreLine& line = plane.line;
  if (line.rounding == StoreLine::Rounding::kNone || count < kPixels)
    return scalar_store_kernels().widen16(plane, in, count, out);
  line.rounding == StoreLine::Rounding::kFloat16 ? compute16<ToFloat16>(line, in, count, out)
                                                 : compute16<ToBfloat16>(line, in, count, out);
}

struct Reciprocal {
  __m256 factor, rest;

  MILLRACE_AVX2 __m256 times(__m256 x) const { return _mm256_fmadd_ps(x, factor, _mm256_mul_ps(x, rest)); }
};

MILLRACE_AVX2 void compute32(const StoreSteps& steps, const std::uint8_t* in, int count, std::uint32_t* out) {
  constexpr int kAtOnce = 8;
  const Reciprocal unit{_mm256_set1_ps(steps.unit), _mm256_set1_ps(steps.unit_rest)};
  const Reciprocal deviation{_mm256_set1_ps(steps.factor), _mm256_set1_ps(steps.factor_rest)};
  const __m256 mean = _mm256_set1_ps(steps.mean);
  for (int step = 0; step < count; step += kAtOnce) {
    const int x = step + kAtOnce <= count ? step : count - kAtOnce;
    const __m256 values = deviation.times(_mm256_sub_ps(unit.times(as_floats(in + x)), mean));
    _mm256_storeu_ps(reinterpret_cast<float*>(out + x), values);
  }
}

void widen32(const StorePlane& plane, const std::uint8_t* in, int count, std::uint32_t* out) {
  if (!plane.steps.are_right || count < kPixels) return scalar_store_kernels().widen32(plane, in, count, out);
  compute32(plane.steps, in, count, out);
}

}  // namespace

const StoreKernels& avx2_store_kernels() {
  static const StoreKernels kKernels{split, widen16, widen32};
  return kKernels;
}

}  // namespace millrace::kernels

#endif  // __x86_64__
