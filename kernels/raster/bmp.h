// Windows bitmaps: header, palette and rows of BMP files, as Pillow 13 reads them (README.md). Run-length coded ones:
// bmp_rle.h.
//
// The bytes are hostile. Pure functions; thread-safe.
#pragma once

#include <array>
#include <string>

#include "kernels/base/image_view.h"
#include "kernels/raster/palette.h"
#include "kernels/raster/raster_file.h"

namespace millrace::kernels::raster {

struct BmpHeader {
  enum class Coding : std::uint8_t { kRows, kRle8, kRle4 };
  enum class Pixels : std::uint8_t { kIndex, kFiveFive, kSixFive, kBytes };  // 5-5-5 and 5-6-5 bits of a word

  std::uint32_t width = 0, height = 0;  // as they stand there, kLargestSide at most
  int bits = 0;                         // of a pixel in the file: 1, 4, 8, 16, 24 or 32
  Coding coding = Coding::kRows;
  Pixels pixels = Pixels::kIndex;
  bool is_bottom_up = true;
  bool is_grey = false;  // a palette whose every entry is its own number, or black and white
  bool has_alpha = false;
  std::uint8_t red = 0, green = 0, blue = 0;  // where they are in a pixel of kBytes
  std::size_t data_at = 0;                    // may lie behind the file's end
  Palette palette{};

  bool is_black_and_white() const { return is_grey && palette != kGreys; }
  // What is read then: each pixel's number, not its colour. REQUIRES: Pixels::kIndex.
  void show_indices() { is_grey = true, palette = kGreys; }

  int channels() const { return is_grey ? 1 : 3; }
  std::uint64_t row_bytes() const { return (std::uint64_t{width} * static_cast<unsigned>(bits) + 7) / 8; }
  std::uint64_t stride() const { return (row_bytes() + 3) / 4 * 4; }
  // Where in the file the picture's row `y` from the top begins.
  std::uint64_t row_at(std::uint32_t y) const { return data_at + stride() * (is_bottom_up ? height - 1 - y : y); }
};

bool is_bmp(FileBytes file_untrusted);

// Empty: fine. Otherwise a sentence that says what is wrong; `header` means nothing then. REQUIRES: is_bmp().
std::string read_bmp_header(FileBytes file_untrusted, BmpHeader& header);

// Pixels from `left` on of one row of the file into the one row of `out`, header.channels() a pixel. Alpha is dropped.
// REQUIRES: Coding::kRows; left + out.width is within the row.
void read_bmp_row(const BmpHeader& header, const std::uint8_t* row, int left, MutableU8View out);

}  // namespace millrace::kernels::raster
