// What the targets share that decode: a box by bytes of the input, and whether two images are the same.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/base/image_view.h"

namespace millrace {

// Two bits each for left, top, width and height, in quarters of `size`. Lies within it and is not empty.
inline kernels::Box box_of(std::uint8_t choice, kernels::Size size) {
  const int left = (choice & 3) * (size.width - 1) / 4, top = (choice >> 2 & 3) * (size.height - 1) / 4;
  return {left, top, std::max(1, (size.width - left) * (1 + (choice >> 4 & 3)) / 4),
          std::max(1, (size.height - top) * (1 + (choice >> 6)) / 4)};
}

// Two bytes each for left, top, width and height, so that every box can be chosen. Lies within `size` and is not empty.
inline kernels::Box any_box_of(const std::uint8_t* eight, kernels::Size size) {
  const auto below = [&](int at, int bound) { return (eight[at] | eight[at + 1] << 8) % bound; };
  const int left = below(0, size.width), top = below(2, size.height);
  return {left, top, 1 + below(4, size.width - left), 1 + below(6, size.height - top)};
}

inline bool same_pixels(const kernels::U8View& a, const kernels::U8View& b) {
  if (a.channels != b.channels) return false;
  for (int y = 0; y < a.height; ++y) {
    if (std::memcmp(a.row(y), b.row(y), static_cast<std::size_t>(a.width) * a.channels) != 0) return false;
  }
  return true;
}

}  // namespace millrace
