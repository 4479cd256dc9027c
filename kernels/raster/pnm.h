// Portable anymaps: PBM, PGM and PPM with binary samples (P4, P5, P6), and PAM (P7). A header of text, then rows; so
// this is how pixels travel that nobody wants to encode. README.md says what Pillow makes of them.
//
// The bytes are hostile. Pure functions; thread-safe.
#pragma once

#include <array>
#include <string>

#include "kernels/base/image_view.h"
#include "kernels/raster/raster_file.h"

namespace millrace::kernels::raster {

struct PnmHeader {
  std::uint32_t width = 0, height = 0;  // as they stand there, kLargestSide at most
  int samples = 0;                      // of a pixel in the file: 1, 2, 3 or 4
  int sample_bits = 0;                  // 1, 8 or 16, the most significant first
  std::uint32_t most = 0;               // the sample that is white; 1 ... 65535
  std::size_t data_at = 0;              // where the rows begin, within the file or at its end

  bool has_alpha() const { return samples == 2 || samples == 4; }
  int channels() const { return samples < 3 ? 1 : 3; }
  // Of the rows as they are in memory: nothing but to be copied.
  bool is_plain() const { return sample_bits == 8 && most == 255 && !has_alpha(); }
  std::uint64_t row_bytes() const;
};

// The first bytes of a file tell it: P1 ... P6 and white space, P7 and a new line.
bool is_pnm(FileBytes file_untrusted);

// Empty: fine. Otherwise a sentence that says what is wrong; `header` means nothing then. REQUIRES: is_pnm().
std::string read_pnm_header(FileBytes file_untrusted, PnmHeader& header);

// Rows of a file to 8 bits a sample: alpha dropped, samples scaled by Pillow's arithmetic, 16-bit grey cut off at 255.
class PnmRows {
 public:
  explicit PnmRows(const PnmHeader& header);

  // Pixels from `left` on of one row of the file into the one row of `out`, header.channels() a pixel. REQUIRES: left +
  // out.width is within the row.
  void read(const std::uint8_t* row, int left, MutableU8View out) const;

 private:
  void read_words(const std::uint8_t* row, int left, MutableU8View out) const;

  PnmHeader header_;
  std::array<std::uint8_t, 256> scale_;  // of 8-bit samples
};

}  // namespace millrace::kernels::raster
