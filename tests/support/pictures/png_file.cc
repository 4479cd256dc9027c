#include "tests/support/pictures/png_file.h"

#include <zlib.h>

#include <stdexcept>

namespace millrace {
namespace {

constexpr std::size_t kSignature = 8;

unsigned number_at(std::string_view bytes, std::size_t at) {
  unsigned value = 0;
  for (std::size_t i = at; i < at + 4; ++i) value = value << 8U | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

std::string big_endian(const std::vector<unsigned>& numbers) {
  std::string bytes;
  for (const unsigned number : numbers) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> static_cast<unsigned>(shift));
  }
  return bytes;
}

std::vector<std::byte> make_png_of(const std::vector<PngPart>& parts) {
  std::string file = "\x89PNG\r\n\x1A\n";
  for (const PngPart& part : parts) {
    const std::string checked = part.type + part.data;
    file += big_endian({static_cast<unsigned>(part.data.size())}) + checked;
    file += big_endian({static_cast<unsigned>(
        crc32_z(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<z_size_t>(checked.size())))});
  }
  const auto* const bytes = reinterpret_cast<const std::byte*>(file.data());
  return {bytes, bytes + file.size()};
}

std::vector<PngPart> parts_of(const std::vector<std::byte>& png) {
  const std::string_view file(reinterpret_cast<const char*>(png.data()), png.size());
  std::vector<PngPart> parts;
  for (std::size_t at = kSignature; at + 8 <= file.size();) {
    const unsigned length = number_at(file, at);
    parts.push_back({std::string(file.substr(at + 4, 4)), std::string(file.substr(at + 8, length))});
    at += std::size_t{length} + 12;
  }
  return parts;
}

std::string png_header(unsigned width, unsigned height, unsigned bit_depth, unsigned colour_type, unsigned interlace) {
  return big_endian({width, height}) + static_cast<char>(bit_depth) + static_cast<char>(colour_type) + '\0' + '\0' +
         static_cast<char>(interlace);
}

std::string deflated(std::string_view data, int level) {
  uLongf size = compressBound(static_cast<uLong>(data.size()));
  std::string stream(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(stream.data()), &size, reinterpret_cast<const Bytef*>(data.data()),
                static_cast<uLong>(data.size()), level) != Z_OK)
    throw std::runtime_error("test image: zlib does not compress");
  stream.resize(size);
  return stream;
}

}  // namespace millrace
