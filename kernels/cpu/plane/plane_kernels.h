// What a target supplies for the fast resampling of planes. Internal to kernels/cpu. All targets give the same bytes.
// Inputs and outputs of a call do not overlap but where it says so.
#pragma once

#include <cstdint>

#include "kernels/base/target.h"
#include "kernels/cpu/plane/plane_axis.h"

namespace millrace::kernels {

// Rows of samples that these kernels make have room for so many bytes more: they write whole vectors, and read as far
// after the last sample that counts.
inline constexpr int kPlaneSlack = 128;

struct PlaneKernels {
  // nullptr: the horizontal pass needs no windows.
  const WindowShape* shape;
  // out[x] = sum(weights[t] * rows[t][x]) / 2^bits, rounded and clamped: wide weights, and narrow ones. `taps` is even.
  // Up to 63 bytes after a row's last sample are read, and written to `out`.
  void (*vertical)(const std::uint8_t* const* rows, const std::int16_t* weights, int taps, int samples,
                   std::uint8_t* out);
  void (*vertical_narrow)(const std::uint8_t* const* rows, const std::int16_t* weights, int taps, int samples,
                          std::uint8_t* out);
  // axis.count() outputs of axis.channels samples, from a row that begins with those of axis.begin. An output's taps
  // are read where they weigh 0, too: there the row has room for axis.taps more.
  void (*horizontal)(const PlaneAxis& axis, const std::uint8_t* row, std::uint8_t* out);
  // Y, Cb, Cr to R, G, B in place; libjpeg's rounding.
  void (*to_rgb)(std::uint8_t* const planes[3], int count);
  // Three planes to pixels of three bytes, whose row has room for 192 more.
  void (*to_pixels)(const std::uint8_t* const planes[3], int count, std::uint8_t* pixels);
};

const PlaneKernels& plane_kernels(Target target);

const PlaneKernels& scalar_plane_kernels();
#if defined(__x86_64__)
const PlaneKernels& avx2_plane_kernels();
const PlaneKernels& avx512bw_plane_kernels();
const PlaneKernels& avx512_plane_kernels();
#endif

}  // namespace millrace::kernels
