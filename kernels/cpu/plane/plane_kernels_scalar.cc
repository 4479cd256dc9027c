// The plane kernels as plain loops, and the choice among all.
#include <algorithm>

#include "kernels/cpu/plane/plane_kernels.h"

namespace millrace::kernels {
namespace {

std::uint8_t clamp(std::int32_t value) {
  return static_cast<std::uint8_t>(std::clamp(value, 0, 255));
}

template <int kBits>
void vertical(const std::uint8_t* const* rows, const std::int16_t* weights, int taps, int samples, std::uint8_t* out) {
  for (int x = 0; x < samples; ++x) {
    std::int32_t sum = 1 << (kBits - 1);
    for (int t = 0; t < taps; ++t) sum += weights[t] * rows[t][x];
    out[x] = clamp(sum >> kBits);
  }
}

void horizontal(const PlaneAxis& axis, const std::uint8_t* row, std::uint8_t* out) {
  const std::int16_t* weight = axis.weight.data();
  for (const std::int32_t start : axis.start) {
    const std::uint8_t* in = row + std::ptrdiff_t{start - axis.begin} * axis.channels;
    for (int c = 0; c < axis.channels; ++c, ++in) {
      std::int32_t sum = 1 << (axis.bits - 1);
      for (int t = 0; t < axis.taps; ++t) sum += weight[t] * in[t * axis.channels];
      *out++ = clamp(sum >> axis.bits);
    }
    weight += axis.taps;
  }
}

// 16 fractional bits: 1.402, 0.344136286, 0.714136286, 1.772.
void to_rgb(std::uint8_t* const planes[3], int count) {
  constexpr int kHalfOf16 = 1 << 15;
  for (int i = 0; i < count; ++i) {
    const int y = planes[0][i], cb = planes[1][i] - 128, cr = planes[2][i] - 128;
    planes[0][i] = clamp(y + ((91881 * cr + kHalfOf16) >> 16));
    planes[1][i] = clamp(y + ((-22554 * cb - 46802 * cr + kHalfOf16) >> 16));
    planes[2][i] = clamp(y + ((116130 * cb + kHalfOf16) >> 16));
  }
}

void to_pixels(const std::uint8_t* const planes[3], int count, std::uint8_t* pixels) {
  for (int i = 0; i < count; ++i) {
    for (int c = 0; c < 3; ++c) *pixels++ = planes[c][i];
  }
}

}  // namespace

const PlaneKernels& scalar_plane_kernels() {
  static constexpr PlaneKernels kKernels{nullptr,  vertical<kWideBits>, vertical<kNarrowBits>, horizontal, to_rgb,
                                         to_pixels};
  return kKernels;
}

const PlaneKernels& plane_kernels(Target target) {
#if defined(__x86_64__)
  if (target == Target::kAvx512) return avx512_plane_kernels();
  if (target == Target::kAvx512Bw) return avx512bw_plane_kernels();
  if (target != Target::kScalar) return avx2_plane_kernels();
#endif
  static_cast<void>(target);
  return scalar_plane_kernels();
}

}  // namespace millrace::kernels
