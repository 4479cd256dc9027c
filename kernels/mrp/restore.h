// A packed file (packed_file.h) back to the JPEG file that it was made from, byte for byte.
//
// The bytes are hostile. What comes out has the size and the hash that the file names, or nothing comes out.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/target.h"
#include "kernels/mrp/packed_file.h"
#include "kernels/packed/packed_image.h"
#include "kernels/packed/unpack.h"

namespace millrace::kernels::mrp {

// Holds the blocks of an MCU row of the largest image so far. Thread-bound(its owner).
class Restorer {
 public:
  // REQUIRES: the processor has `target`.
  explicit Restorer(Target target = best_target()) : unpacker_(packed::unpacker(target)) {}

  // Empty: `jpeg` is the file. Otherwise what is wrong, for a sentence; `jpeg` means nothing then.
  // REQUIRES: packed::kPadding readable bytes behind `file_untrusted`.
  std::string restore(FileBytes file_untrusted, std::vector<std::uint8_t>& jpeg);

 private:
  struct alignas(64) Block {
    std::array<std::int16_t, jpeg::kCoefficients> values;
  };

  bool write_scan(const jpeg::Header& header, const jpeg::ScanPadding& padding, std::vector<std::uint8_t>& jpeg);
  void unpack_line(int line);
  bool write_line();

  const packed::Unpacker& unpacker_;
  packed::PackedImage image_;
  jpeg::ScanWriter writer_;
  std::array<std::vector<Block>, 3> planes_;  // blocks of an MCU row, a component each, block row by block row
};

}  // namespace millrace::kernels::mrp
