// PNG files put together chunk by chunk, so that a test decides what is wrong with one. Thread-safe: plain functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

struct PngPart {
  std::string type;  // four characters
  std::string data;
};

// The file of these chunks, with right lengths and checksums.
std::vector<std::byte> make_png_of(const std::vector<PngPart>& parts);

// The chunks of a PNG file that is whole.
std::vector<PngPart> parts_of(const std::vector<std::byte>& png);

// IHDR's data.
std::string png_header(unsigned width, unsigned height, unsigned bit_depth, unsigned colour_type,
                       unsigned interlace = 0);

// `numbers`, four bytes each, the highest first.
std::string big_endian(const std::vector<unsigned>& numbers);

// A zlib stream of `data`.
std::string deflated(std::string_view data, int level = 6);

}  // namespace millrace
