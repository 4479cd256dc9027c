// The functions that a target supplies. Internal to kernels/augment. Planes are 64-byte-aligned, and `count` is a
// multiple of 64 where a function says `padded`; what it does behind the picture's end is of no account. No two rows or
// planes overlap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/augment/operation.h"
#include "kernels/base/target.h"

namespace millrace::kernels::augment {

using Byte = std::uint8_t;

struct Planes {
  Byte* plane[3];
};

// One pass of Pillow's extended box: a pixel and `radius` each way weigh `inner` and the next two `outer`, in 2^-24.
struct BoxPass {
  int radius;
  std::uint32_t inner, outer;
};

// The middle of a kernel and what follows it on either side.
struct HalfKernel {
  int radius;
  float weight[50];
};

// RGB pixels without gaps, behind which kSlack bytes more may be read.
struct Pixels {
  const Byte* data;
  int width, height;
};

constexpr std::size_t kSlack = 64;

// Coordinates of 16 bits before and 16 behind the point, of a row's first pixel, and from each pixel to the next. They
// wrap.
struct FixedRow {
  std::uint32_t x, y, x_step, y_step;
};

struct Weighted {
  const Byte* plane;
  float weight;
};

constexpr std::size_t kStrip = 128;  // columns that a blur works on at a time

// Image.blend with a factor, prepared. The tables are for AVX-512, by the distance between a value and what it is
// blended with: what the latter gains where it is the smaller one, and what it loses where it is not. Where the
// change is almost an integer, the sum's rounding decides: results up to a last one are 1 less.
struct Blend {
  float factor;
  bool has_tables, has_whole, has_last_gained, has_last_lost;  // whole changes, of other distances than 0
  alignas(64) Byte gain[256], loss[256], last_less_gained[256], last_less_lost[256];
};

struct Kernels {
  void (*split)(const Byte* pixels, std::size_t count, const Planes& planes, std::size_t at);
  void (*merge)(const Planes& planes, std::size_t at, std::size_t count, Byte* pixels);
  void (*map)(const Byte* table, Byte* plane, std::size_t padded);
  // convert("L") into all three planes.
  void (*grey)(const Planes& planes, std::size_t padded);
  // Takes the least and the largest value along.
  void (*widen_range)(const Byte* plane, std::size_t count, Byte* least, Byte* most);
  // The sum of convert("L").
  std::uint64_t (*grey_sum)(const Planes& planes, std::size_t count);
  void (*prepare)(float factor, Blend& blend);
  void (*saturate)(const Blend& blend, const Planes& planes, std::size_t padded);
  void (*hue)(Byte shift, const Planes& planes, std::size_t padded);
  // filter(SMOOTH) of a row that has one above and one below it, without its first and last pixel.
  void (*smooth)(const Byte* above, const Byte* row, const Byte* below, std::size_t width, Byte* out);
  // Image.blend of what `out` holds with `in`, to `out`.
  void (*blend)(const Blend& blend, const Byte* in, std::size_t padded, Byte* out);
  // To a row of `in.width` pixels of the planes, which begins at `at`, those pixels that its coordinates have in `in`.
  void (*copy_fixed)(const FixedRow& row, const Pixels& in, const Planes& out, std::size_t at);
  // Likewise, with the coordinates that a kAffine or kPerspective has for row `y`, and its sampling.
  void (*sample)(const Operation& operation, const Pixels& in, int y, const Planes& out, std::size_t at);
  // Down `columns` columns, no more than kStrip, of planes with `width` bytes a row.
  void (*box)(const BoxPass& pass, const Byte* in, std::size_t columns, std::size_t width, int height, Byte* out);
  // Of a row of kStrip values with the kernel's radius more on either side.
  void (*weigh_across)(const HalfKernel& kernel, const float* row, float* out);
  // Of rows of kStrip that `rows` has, as many as the kernel is high, rounded half to even.
  void (*weigh_down)(const HalfKernel& kernel, const float* const* rows, Byte* out);
  void (*mirror)(const Byte* row, std::size_t width, Byte* out);
  // The sum of the planes by weight, the first ones first, as kMixEnd says, to `out`, which may be one of them.
  void (*mix)(const Weighted* planes, std::size_t planes_count, std::size_t padded, Byte* out);
};

const Kernels& scalar_kernels();
#if defined(__x86_64__)
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();
const Kernels& avx512bw_kernels();
#endif

inline const Kernels& kernels_of([[maybe_unused]] Target target) {
#if defined(__x86_64__)
  if (target == Target::kAvx512) return avx512_kernels();
  if (target == Target::kAvx512Bw) return avx512bw_kernels();
  if (target != Target::kScalar) return avx2_kernels();
#endif
  return scalar_kernels();
}

}  // namespace millrace::kernels::augment
