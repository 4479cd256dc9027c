// Packed files (kernels/mrp) made of JPEG files, and these again, by the code of `millrace convert`. What cannot be
// packed throws std::runtime_error: a broken test. Thread-safe: plain functions. Linked with millrace_cli_convert.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "client/cli/convert/file_packer.h"

namespace millrace {

inline std::vector<std::byte> make_mrp(std::span<const std::byte> jpeg, std::string_view ending = "jpg") {
  cli::FilePacker packer;
  std::vector<std::uint8_t> packed;
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(jpeg.data()), jpeg.size());
  if (packer.pack(bytes, ending, packed) != cli::WhyCopied::kNothing)
    throw std::runtime_error("this JPEG file cannot be packed");
  std::vector<std::byte> file(packed.size());
  std::memcpy(file.data(), packed.data(), packed.size());
  return file;
}

inline std::vector<std::byte> jpeg_of_mrp(std::span<const std::byte> mrp) {
  cli::FilePacker packer;
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(mrp.data());
  std::vector<std::uint8_t> packed(begin, begin + mrp.size()), jpeg;
  if (const std::string wrong = packer.restore(packed, jpeg); !wrong.empty()) throw std::runtime_error(wrong);
  std::vector<std::byte> file(jpeg.size());
  std::memcpy(file.data(), jpeg.data(), jpeg.size());
  return file;
}

}  // namespace millrace
