// A JPEG file in memory to a packed file (kernels/mrp) and back. Thread-bound(its owner).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/cli/convert/why_copied.h"
#include "kernels/cpu/jpeg/decoder.h"
#include "kernels/mrp/restore.h"
#include "kernels/packed/encoder.h"

namespace millrace::cli {

using FileBytes = std::span<const std::uint8_t>;

bool is_jpeg(FileBytes file);  // by how it begins

class FilePacker {
 public:
  FilePacker() = default;

  // `packed` is the packed file if the answer is kNothing: restored in memory, it was `jpeg` byte for byte.
  // `ending`: of the file's name, without the dot.
  WhyCopied pack(FileBytes jpeg_untrusted, std::string_view ending, std::vector<std::uint8_t>& packed);

  // The way back. Empty: `jpeg` is the file; otherwise what is wrong. Grows `packed_untrusted` by readable bytes, and
  // shrinks it again.
  std::string restore(std::vector<std::uint8_t>& packed_untrusted, std::vector<std::uint8_t>& jpeg);

 private:
  WhyCopied read_blocks(const kernels::jpeg::Header& header, std::vector<std::uint8_t>& image,
                        std::vector<std::uint8_t>& scan);

  kernels::jpeg::Decoder decoder_;
  kernels::packed::Encoder encoder_;
  kernels::jpeg::ScanWriter writer_;
  kernels::mrp::Restorer restorer_;
  std::vector<std::uint8_t> image_, scan_, restored_;
};

}  // namespace millrace::cli
