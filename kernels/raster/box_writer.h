// Pixels of a picture one after the other, of which a box is kept. Values.
#pragma once

#include "kernels/base/image_view.h"

namespace millrace::kernels::raster {

// Columns from the left of one row of the picture; those within the box are written. REQUIRES: the box is as large as
// `out`.
class BoxWriter {
 public:
  BoxWriter(const Box& box, MutableU8View out, const std::uint8_t* palette) : box_(box), out_(out), palette_(palette) {}

  // To the picture's row `y`, whether the box has it or not.
  void begin_row(int y) {
    const int row = y - box_.top;
    row_ = row >= 0 && row < box_.height ? out_.row(row) : nullptr;
  }

  // The pixel at column `x` of the row: colour `index` of the palette.
  void put(int x, std::uint8_t index) {
    const int column = x - box_.left;
    if (row_ == nullptr || column < 0 || column >= box_.width) return;
    const std::uint8_t* const colour = palette_ + 3 * index;
    std::uint8_t* const to = row_ + std::ptrdiff_t{column} * out_.channels;
    to[0] = colour[0];
    if (out_.channels == 3) to[1] = colour[1], to[2] = colour[2];
  }

 private:
  Box box_;
  MutableU8View out_;
  const std::uint8_t* palette_;
  std::uint8_t* row_ = nullptr;
};

}  // namespace millrace::kernels::raster
