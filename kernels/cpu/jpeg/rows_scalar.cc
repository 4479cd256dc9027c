// The row kernels as plain loops, and the choice among all.
#include <algorithm>

#include "kernels/cpu/jpeg/rows.h"

namespace millrace::kernels::jpeg {
namespace {

void widen(const std::uint8_t* in, int count, std::uint8_t* out) {
  for (int i = 0; i < count; ++i) {
    out[2 * i] = static_cast<std::uint8_t>((3 * in[i] + in[i - 1] + 1) >> 2);
    out[2 * i + 1] = static_cast<std::uint8_t>((3 * in[i] + in[i + 1] + 2) >> 2);
  }
}

void blend(const std::uint8_t* near, const std::uint8_t* far, int count, std::int16_t* sums) {
  for (int i = -1; i <= count; ++i) sums[i] = static_cast<std::int16_t>(3 * near[i] + far[i]);
}

void widen_sums(const std::int16_t* sums, int count, std::uint8_t* out) {
  for (int i = 0; i < count; ++i) {
    out[2 * i] = static_cast<std::uint8_t>((3 * sums[i] + sums[i - 1] + 8) >> 4);
    out[2 * i + 1] = static_cast<std::uint8_t>((3 * sums[i] + sums[i + 1] + 7) >> 4);
  }
}

void blend_only(const std::uint8_t* near, const std::uint8_t* far, int count, int bias, std::uint8_t* out) {
  for (int i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>((3 * near[i] + far[i] + bias) >> 2);
}

std::uint8_t clamp(int value) {
  return static_cast<std::uint8_t>(std::clamp(value, 0, 255));
}

// 16 fractional bits: 1.402, 0.344136286, 0.714136286, 1.772.
void to_rgb(const std::uint8_t* luma, const std::uint8_t* blue, const std::uint8_t* red, int count,
            std::uint8_t* pixels) {
  constexpr int kHalf = 1 << 15;
  for (int i = 0; i < count; ++i, pixels += 3) {
    const int y = luma[i], cb = blue[i] - 128, cr = red[i] - 128;
    pixels[0] = clamp(y + ((91881 * cr + kHalf) >> 16));
    pixels[1] = clamp(y + ((-22554 * cb - 46802 * cr + kHalf) >> 16));
    pixels[2] = clamp(y + ((116130 * cb + kHalf) >> 16));
  }
}

}  // namespace

const PixelRowKernels& scalar_pixel_row_kernels() {
  static constexpr PixelRowKernels kKernels{widen, blend, widen_sums, blend_only, to_rgb};
  return kKernels;
}

const PixelRowKernels& pixel_row_kernels(Target target) {
#if defined(__x86_64__)
  if (target == Target::kAvx512) return avx512_pixel_row_kernels();
  if (target == Target::kAvx512Bw) return avx512bw_pixel_row_kernels();
  if (target != Target::kScalar) return avx2_pixel_row_kernels();
#endif
  static_cast<void>(target);
  return scalar_pixel_row_kernels();
}

}  // namespace millrace::kernels::jpeg
