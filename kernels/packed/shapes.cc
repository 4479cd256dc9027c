#include "kernels/packed/shapes.h"

namespace millrace::kernels::packed {
namespace {

constexpr bool are_sound() {
  for (std::size_t i = 0; i < kRawShape; ++i) {
    const ShapeSpec& spec = kShapeSpecs[i];
    if (spec.bitmap_bytes < 0 || spec.bitmap_bytes > 8 ||
        (i > 0 && spec.bitmap_bytes < kShapeSpecs[i - 1].bitmap_bytes))
      return false;
    for (int lane = 0; lane < kLanes; ++lane) {
      const int most = lane < 2 ? kWideWidth : 8;
      if (spec.widths[lane] < 1 || spec.widths[lane] > most) return false;
    }
    if (spec.widths[1] == kWideWidth && spec.widths[0] != kWideWidth) return false;
  }
  return true;
}
static_assert(are_sound());

constexpr Shape make_shape(const ShapeSpec& spec) {
  Shape shape;
  std::uint64_t start = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int bits = spec.widths[lane] == kWideWidth ? 8 : spec.widths[lane];
    shape.widths |= static_cast<std::uint64_t>(bits) << (8 * lane);
    shape.starts |= start << (8 * lane);
    start += static_cast<std::uint64_t>(bits);
    if (bits == 8) shape.align = 7;
  }
  shape.bitmap_bytes = static_cast<std::uint32_t>(spec.bitmap_bytes);
  shape.nibbles = spec.widths[1] == kWideWidth ? 16 : spec.widths[0] == kWideWidth ? 8 : 0;
  return shape;
}

constexpr Shapes make_shapes() {
  Shapes shapes;
  for (std::size_t i = 0; i < kRawShape; ++i) shapes[i] = make_shape(kShapeSpecs[i]);
  shapes[kRawShape].bitmap_bytes = 8;
  shapes[kRawShape].align = 7;
  shapes[kRawShape].raw = 1;
  return shapes;
}

}  // namespace

constinit const Shapes kShapes = make_shapes();

}  // namespace millrace::kernels::packed
