// Files of formats that want no library.
#include <stdexcept>
#include <string>

#include "tests/support/test_images.h"

namespace millrace {
namespace {

std::vector<std::byte> file_of(const std::string& text) {
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

std::string pnm_header(const PnmSpec& spec) {
  const Pixels& pixels = spec.pixels;
  const std::string width = std::to_string(pixels.width), height = std::to_string(pixels.height);
  const std::string most = std::to_string(spec.most);
  if (spec.bits == 1) return "P4\n" + width + " " + height + "\n";
  if (pixels.channels % 2 == 1)
    return (pixels.channels == 1 ? "P5\n" : "P6\n") + width + " " + height + "\n" + most + "\n";
  return "P7\nWIDTH " + width + "\nHEIGHT " + height + "\nDEPTH " + std::to_string(pixels.channels) + "\nMAXVAL " +
         most + "\nTUPLTYPE " + (pixels.channels == 2 ? "GRAYSCALE_ALPHA" : "RGB_ALPHA") + "\nENDHDR\n";
}

std::string bits_of(const Pixels& pixels) {
  std::string rows;
  for (std::uint32_t y = 0; y < pixels.height; ++y) {
    std::string row((pixels.width + 7) / 8, '\0');
    for (std::uint32_t x = 0; x < pixels.width; ++x) {
      if (pixels.data[std::size_t{y} * pixels.width + x] < 128)
        row[x / 8] = static_cast<char>(row[x / 8] | 0x80 >> x % 8);
    }
    rows += row;
  }
  return rows;
}

}  // namespace

std::vector<std::byte> make_pnm(const PnmSpec& spec) {
  const Pixels& pixels = spec.pixels;
  if (pixels.data.size() != std::size_t{pixels.width} * pixels.height * pixels.channels)
    throw std::runtime_error("test image: pixels of another size");
  std::string text = pnm_header(spec);
  if (spec.bits == 1) return file_of(text + bits_of(pixels));
  for (const std::uint8_t value : pixels.data) {
    text += static_cast<char>(value);
    if (spec.bits == 16) text += static_cast<char>(~value);
  }
  return file_of(text);
}

}  // namespace millrace
