// EXIF orientation (tag 0x0112): what a stored picture needs so that its top is up, as Pillow's
// ImageOps.exif_transpose does. Values and plain functions: thread-safe.
//
// "Oriented" coordinates are those of the turned picture.
#pragma once

#include <cstdint>

#include "kernels/base/image_view.h"

namespace millrace::kernels {

// The values of the tag; what the stored picture needs in order to be upright.
enum class Orientation : std::uint8_t {
  kUpright = 1,
  kMirror = 2,  // left to right
  kRotate180 = 3,
  kFlip = 4,        // top to bottom
  kTranspose = 5,   // along the main diagonal
  kRotate90 = 6,    // clockwise
  kTransverse = 7,  // along the other diagonal
  kRotate270 = 8,   // clockwise
};

// Any tag value; what is not 1 to 8 counts as upright.
constexpr Orientation orientation_of(int tag) {
  return tag >= 1 && tag <= 8 ? static_cast<Orientation>(tag) : Orientation::kUpright;
}

constexpr bool swaps_sides(Orientation orientation) {
  return orientation >= Orientation::kTranspose;
}

// The size of the turned picture.
constexpr Size oriented(Size stored, Orientation orientation) {
  return swaps_sides(orientation) ? Size{stored.height, stored.width} : stored;
}

struct Point {
  int x;
  int y;
};

// Where pixel `at` of the turned picture lies in the stored one.
Point stored_point(Point at, Size stored, Orientation orientation);

// Where in the stored picture `box`, given in oriented coordinates, comes from. REQUIRES: `box` lies inside
// oriented(stored, orientation).
Box stored_box(const Box& box, Size stored, Orientation orientation);

}  // namespace millrace::kernels
