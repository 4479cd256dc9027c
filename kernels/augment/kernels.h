// The functions that a target supplies. Internal to kernels/augment. Planes are 64-byte-aligned, and `count` is a
// multiple of 64 where a function says `padded`; what it does behind the picture's end is of no account. No two rows or
// planes overlap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/target.h"

namespace millrace::kernels::augment {

using Byte = std::uint8_t;

struct Planes {
  Byte* plane[3];
};

struct Kernels {
  void (*split)(const Byte* pixels, std::size_t count, const Planes& planes, std::size_t at);
  void (*merge)(const Planes& planes, std::size_t at, std::size_t count, Byte* pixels);
  void (*map)(const Byte* table, Byte* plane, std::size_t padded);
  // convert("L") into all three planes.
  void (*grey)(const Planes& planes, std::size_t padded);
  // The sum of convert("L").
  std::uint64_t (*grey_sum)(const Planes& planes, std::size_t count);
  void (*saturate)(float factor, const Planes& planes, std::size_t padded);
  void (*hue)(Byte shift, const Planes& planes, std::size_t padded);
  // filter(SMOOTH) of a row that has one above and one below it; the first and the last pixel stay.
  void (*smooth)(const Byte* above, const Byte* row, const Byte* below, std::size_t width, Byte* out);
  // Image.blend of what `out` holds with `in`, to `out`.
  void (*blend)(float factor, const Byte* in, std::size_t padded, Byte* out);
  void (*mirror)(const Byte* row, std::size_t width, Byte* out);
};

const Kernels& scalar_kernels();
#if defined(__x86_64__)
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();
#endif

inline const Kernels& kernels_of([[maybe_unused]] Target target) {
#if defined(__x86_64__)
  if (target == Target::kAvx512) return avx512_kernels();
  if (target == Target::kAvx2) return avx2_kernels();
#endif
  return scalar_kernels();
}

}  // namespace millrace::kernels::augment
