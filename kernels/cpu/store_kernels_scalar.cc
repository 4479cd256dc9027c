#include "kernels/cpu/store_kernels.h"

namespace millrace::kernels {
namespace {

void split(const std::uint8_t* pixels, int count, Flip flip, std::uint8_t* const planes[3]) {
  for (int x = 0; x < count; ++x, pixels += 3) {
    const int at = flip == Flip::kHorizontal ? count - 1 - x : x;
    for (int c = 0; c < 3; ++c) planes[c][at] = pixels[c];
  }
}

void widen16(const StorePlane& plane, const std::uint8_t* in, int count, std::uint16_t* out) {
  for (int i = 0; i < count; ++i) out[i] = static_cast<std::uint16_t>(plane.values[in[i]]);
}

void widen32(const StorePlane& plane, const std::uint8_t* in, int count, std::uint32_t* out) {
  for (int i = 0; i < count; ++i) out[i] = plane.values[in[i]];
}

}  // namespace

const StoreKernels& scalar_store_kernels() {
  static constexpr StoreKernels kKernels{split, widen16, widen32};
  return kKernels;
}

const StoreKernels& store_kernels(Target target) {
#if defined(__x86_64__)
  if (target == Target::kAvx512) return avx512_store_kernels();
  if (target == Target::kAvx512Bw) return avx512bw_store_kernels();
  if (target != Target::kScalar) return avx2_store_kernels();
#endif
  (void)target;
  return scalar_store_kernels();
}

}  // namespace millrace::kernels
