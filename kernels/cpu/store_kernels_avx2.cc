// Storing with AVX2: byte shuffles take pixels apart. Table look-ups stay scalar: two loads and a store an element beat
// AVX2's gathers.
#include "kernels/cpu/store_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define MILLRACE_AVX2 __attribute__((target("avx2")))

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

// The last 16 pixels overlap the 16 before them where the count is no multiple of 16.
MILLRACE_AVX2 void split(const std::uint8_t* pixels, int count, Flip flip, std::uint8_t* const planes[3]) {
  if (count < kPixels) return scalar_store_kernels().split(pixels, count, flip, planes);
  const bool mirrored = flip == Flip::kHorizontal;
  const SplitTable& table = mirrored ? kMirrored : kForward;
  for (int step = 0; step < count; step += kPixels) {
    const int x = step + kPixels <= count ? step : count - kPixels;
    split_16(pixels + 3 * static_cast<std::ptrdiff_t>(x), table, mirrored ? count - kPixels - x : x, planes);
  }
}

}  // namespace

const StoreKernels& avx2_store_kernels() {
  static const StoreKernels kKernels{split, scalar_store_kernels().widen16, scalar_store_kernels().widen32};
  return kKernels;
}

}  // namespace millrace::kernels

#endif  // __x86_64__
