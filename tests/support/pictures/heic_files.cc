#include "tests/support/pictures/heic_files.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/support/pictures/image_folder.h"

namespace millrace {
namespace {

std::string path_of(const std::string& name) {
  return MILLRACE_HEIC_FILES "/" + name;
}

}  // namespace

std::vector<std::byte> heic_file(const std::string& name) {
  return read_file(path_of(name + ".heic"));
}

Pixels heic_pixels(const std::string& name) {
  const bool is_grey = std::filesystem::exists(path_of(name + ".pgm"));
  std::ifstream file(path_of(name + (is_grey ? ".pgm" : ".ppm")), std::ios::binary);
  std::string kind;
  int most = 0;
  Pixels pixels{.channels = is_grey ? 1U : 3U};
  file >> kind >> pixels.width >> pixels.height >> most;
  file.get();
  pixels.data.assign(std::istreambuf_iterator<char>(file), {});
  if (most != 255 || pixels.data.size() != std::size_t{pixels.width} * pixels.height * pixels.channels)
    throw std::runtime_error("test image: pixels of " + name);
  return pixels;
}

}  // namespace millrace
