// Samples as libde265 hands them over to RGB of 8 bits, as libheif 1.23 in pillow-heif makes them: chroma repeated,
// 4:2:0 in fixed point after it was taken down to 8 bits, all else in floating point before. Chroma is interpolated
// where libheif does it before it turns a picture. Pure functions, thread-safe.
#pragma once

#include <cstdint>

namespace millrace {

struct HeicPlanes {
  const std::uint8_t* planes[3] = {};
  int strides[3] = {};                      // bytes
  int bits = 8;                             // more than 8: samples of 16 bits
  int chroma_right = 0, chroma_down = 0;    // shifts: 4:2:0 has 1 and 1
  int chroma_columns = 0, chroma_rows = 0;  // that count; of grey none
  bool is_smoothed = false;                 // chroma is interpolated
  bool is_grey = false;
  bool is_full_range = true;
  int matrix = 2;  // ITU-T H.273, table 4
};

// Whether there is a conversion for its matrix.
bool is_made_rgb(const HeicPlanes& planes);

// `count` pixels of row `y` from column `left` on: a byte each of grey, three of colour.
void convert_heic_row(const HeicPlanes& planes, int y, int left, int count, std::uint8_t* out);

}  // namespace millrace
