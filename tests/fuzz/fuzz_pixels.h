// What the targets share that decode: a box by one byte of the input, and whether two images are the same.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/image_view.h"

namespace millrace {

// Two bits each for left, top, width and height, in quarters of `size`. Lies within it and is not empty.
inline kernels::Box box_of(std::uint8_t choice, kernels::Size size) {
  const int left = (choice & 3) * (size.width - 1) / 4, top = (choice >> 2 & 3) * (size.height - 1) / 4;
  return {left, top, std::max(1, (size.width - left) * (1 + (choice >> 4 & 3)) / 4),
          std::max(1, (size.height - top) * (1 + (choice >> 6)) / 4)};
}

inline bool same_pixels(const kernels::U8View& a, const kernels::U8View& b) {
  if (a.channels != b.channels) return false;
  for (int y = 0; y < a.height; ++y) {
    if (std::memcmp(a.row(y), b.row(y), static_cast<std::size_t>(a.width) * a.channels) != 0) return false;
  }
  return true;
}

}  // namespace millrace
