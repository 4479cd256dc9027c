// Rows of samples to rows of pixels: chroma smoothed up to full size and YCbCr converted to RGB, bit-equal to
// libjpeg-turbo's "fancy" upsampling (jdsample.c) and its fixed-point conversion (jdcolor.c). Thread-safe: plain
// functions over the caller's memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/target.h"

namespace millrace::kernels::jpeg {

// Samples that row kernels may read and write after the counted ones, in rows that are not the tensor's or picture's.
inline constexpr int kRowSlack = 64;

// The conversion's factors without their whole parts (1.402 is 1 and 0.402, 1.772 is 2 less 0.228), in units of 2^-15:
// a rounded multiplication by them is what libjpeg's 16 bits and a half make of each of the 256 values.
inline constexpr std::int16_t kRedOfCr = 13175, kBlueOfCb = -7471;
static_assert([] {
  for (int x = -128; x < 128; ++x) {
    if ((x * kRedOfCr + (1 << 14)) >> 15 != (x * 26345 + (1 << 15)) >> 16) return false;
    if ((x * kBlueOfCb + (1 << 14)) >> 15 != (x * -14942 + (1 << 15)) >> 16) return false;
  }
  return true;
}());

// The same of twice a chroma sample's distance from the middle, with whole parts. Green's factors of that, in units of
// 2^-16, are exact.
inline constexpr std::int16_t kRedOfTwoCr = 22971, kBlueOfTwoCb = 29033, kGreenOfTwoCb = -11277, kGreenOfTwoCr = -23401;
static_assert([] {
  for (int x = -128; x < 128; ++x) {
    if ((2 * x * kRedOfTwoCr + (1 << 14)) >> 15 != (x * 91881 + (1 << 15)) >> 16) return false;
    if ((2 * x * kBlueOfTwoCb + (1 << 14)) >> 15 != (x * 116130 + (1 << 15)) >> 16) return false;
  }
  return 2 * kGreenOfTwoCb == -22554 && 2 * kGreenOfTwoCr == -46802;
}());

struct PixelRowKernels {
  // 2 * count samples from `in`: 3/4 of the nearer, 1/4 of the further. in[-1] and in[count] are read.
  void (*widen)(const std::uint8_t* in, int count, std::uint8_t* out);
  // sums[i] = 3 * near[i] + far[i], i = -1 .. count.
  void (*blend)(const std::uint8_t* near, const std::uint8_t* far, int count, std::int16_t* sums);
  // 2 * count samples from such sums. sums[-1] and sums[count] are read.
  void (*widen_sums)(const std::int16_t* sums, int count, std::uint8_t* out);
  // (3 * near[i] + far[i] + bias) / 4, rounded down.
  void (*blend_only)(const std::uint8_t* near, const std::uint8_t* far, int count, int bias, std::uint8_t* out);
  // `count` RGB pixels. Writes nothing after them.
  void (*to_rgb)(const std::uint8_t* luma, const std::uint8_t* blue, const std::uint8_t* red, int count,
                 std::uint8_t* pixels);
};

const PixelRowKernels& pixel_row_kernels(Target target);
const PixelRowKernels& scalar_pixel_row_kernels();
#if defined(__x86_64__)
const PixelRowKernels& avx2_pixel_row_kernels();
const PixelRowKernels& avx512bw_pixel_row_kernels();
const PixelRowKernels& avx512_pixel_row_kernels();
#endif

}  // namespace millrace::kernels::jpeg
