// Chroma smoothed up to full size and YCbCr to RGB, bit-equal to libjpeg-turbo's "fancy" upsampling (jdsample.c) and
// its fixed-point conversion (jdcolor.c). Pixels travel as one word: red in the lowest byte, then green, then blue.
#pragma once

#include <cstdint>

#include "kernels/cuda/host_device.h"
#include "kernels/cuda/reconstruct/inverse_dct.h"

namespace millrace::kernels::cuda {

// How libjpeg-turbo 2.1 brings a chroma plane to the size of luma. kSmooth: 3/4 of the nearer sample, 1/4 of the
// further. It repeats samples where luma has four a side, or where a plane of half width has only one or two columns.
enum class Smoothing : std::uint8_t { kNone, kAcross, kDown, kBoth };

MILLRACE_HD constexpr Smoothing smoothing_of(int h, int v, int width) {
  if (h == 1 && v == 2) return Smoothing::kDown;
  if (h != 2 || width <= 4) return Smoothing::kNone;
  if (v == 1) return Smoothing::kAcross;
  return v == 2 ? Smoothing::kBoth : Smoothing::kNone;
}

MILLRACE_HD constexpr bool smooths_across(Smoothing smoothing) {
  return smoothing == Smoothing::kAcross || smoothing == Smoothing::kBoth;
}
MILLRACE_HD constexpr bool smooths_down(Smoothing smoothing) {
  return smoothing == Smoothing::kDown || smoothing == Smoothing::kBoth;
}

// Pixel x from its own chroma sample and the neighbour on its side.
MILLRACE_HD constexpr int smooth_across(int x, int near, int far) {
  return (3 * near + far + 1 + x % 2) >> 2;
}
// The same down column: pixel row y.
MILLRACE_HD constexpr int smooth_down(int y, int near, int far) {
  return (3 * near + far + 1 + y % 2) >> 2;
}
// Across, from sums of 3 * near + far down.
MILLRACE_HD constexpr int smooth_sums(int x, int near, int far) {
  return (3 * near + far + 8 - x % 2) >> 4;
}

MILLRACE_HD constexpr std::uint32_t packed(int red, int green, int blue) {
  return static_cast<std::uint32_t>(red) | static_cast<std::uint32_t>(green) << 8 |
         static_cast<std::uint32_t>(blue) << 16;
}

MILLRACE_HD inline int channel_of(std::uint32_t pixel, int channel) {
#if defined(__CUDA_ARCH__)
  return static_cast<int>(__byte_perm(pixel, 0, 0x4440U + static_cast<unsigned>(channel)));  // one instruction
#else
  return static_cast<int>(pixel >> (8 * channel) & 255);
#endif
}

// Its channels, 0 .. 255: red, green, blue, or luma, blue and red differences.
struct Channels {
  int at[3];
};
MILLRACE_HD constexpr std::uint32_t packed(const Channels& pixel) {
  return packed(pixel.at[0], pixel.at[1], pixel.at[2]);
}

// 16 fractional bits: 1.402, 0.344136286, 0.714136286, 1.772.
MILLRACE_HD constexpr Channels to_rgb(int y, int blue, int red) {
  constexpr int kHalf = 1 << 15;
  const int cb = blue - 128, cr = red - 128;
  return {{to_byte(y + ((91881 * cr + kHalf) >> 16)), to_byte(y + ((-22554 * cb - 46802 * cr + kHalf) >> 16)),
           to_byte(y + ((116130 * cb + kHalf) >> 16))}};
}

// Pillow's RGB to L: ITU-R 601-2 luma in 16-bit fixed point, rounded.
MILLRACE_HD constexpr int luma_of(const Channels& rgb) {
  return (rgb.at[0] * 19595 + rgb.at[1] * 38470 + rgb.at[2] * 7471 + 0x8000) >> 16;
}

}  // namespace millrace::kernels::cuda
