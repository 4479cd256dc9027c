// What a block's shape says of how it is packed: the table of 255, and the raw one. Internal to kernels/packed, and to
// who unpacks in a loop of its own. Immutable.
//
// The AC coefficients of a block that are not 0 are its *values*, in zig-zag order; eight by eight they are *lanes*. A
// lane's values have the same width.
#pragma once

#include <array>
#include <cstdint>

namespace millrace::kernels::packed {

inline constexpr int kRawShape = 255;
inline constexpr int kLanes = 8;

struct alignas(32) Shape {
  std::uint64_t widths = 0;        // a byte a lane: bits of its values, 1..8
  std::uint64_t starts = 0;        // a byte a lane: bytes before it
  std::uint32_t bitmap_bytes = 0;  // 0..8
  std::uint32_t align = 0;         // 7: values begin at a byte; 0: anywhere
  std::uint32_t nibbles = 0;       // 0, 8 or 16: so many values have four bits more, behind the others
  std::uint32_t raw = 0;  // 1: values are words of 16 bits, and all of the above but bitmap_bytes and align is 0
};
using Shapes = std::array<Shape, 256>;
extern const Shapes kShapes;

// The same as they are written down, for who chooses: widths of 9 stand for 12 bits.
inline constexpr int kWideWidth = 9;
struct ShapeSpec {
  int bitmap_bytes;
  int widths[kLanes];
};
// In rising order of bitmap_bytes.
// clang-format off
inline constexpr std::array<ShapeSpec, kRawShape> kShapeSpecs = {{
#include "kernels/packed/shapes.inc"
}};
// clang-format on

}  // namespace millrace::kernels::packed
