#include "kernels/tensor/orientation.h"

#include <algorithm>

namespace millrace::kernels {

Point stored_point(Point at, Size stored, Orientation orientation) {
  const int right = stored.width - 1;
  const int bottom = stored.height - 1;
  switch (orientation) {
    case Orientation::kUpright:
      return at;
    case Orientation::kMirror:
      return {right - at.x, at.y};
    case Orientation::kRotate180:
      return {right - at.x, bottom - at.y};
    case Orientation::kFlip:
      return {at.x, bottom - at.y};
    case Orientation::kTranspose:
      return {at.y, at.x};
    case Orientation::kRotate90:
      return {at.y, bottom - at.x};
    case Orientation::kTransverse:
      return {right - at.y, bottom - at.x};
    case Orientation::kRotate270:
      return {right - at.y, at.x};
  }
  return at;
}

Box stored_box(const Box& box, Size stored, Orientation orientation) {
  const Point a = stored_point({box.left, box.top}, stored, orientation);
  const Point b = stored_point({box.left + box.width - 1, box.top + box.height - 1}, stored, orientation);
  const int left = std::min(a.x, b.x);
  const int top = std::min(a.y, b.y);
  return {left, top, std::max(a.x, b.x) - left + 1, std::max(a.y, b.y) - top + 1};
}

}  // namespace millrace::kernels
