#include "tests/support/pictures/image_folder.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/support/pictures/test_images.h"

namespace millrace {
namespace {

struct MadeImage {
  std::string extension;
  std::vector<std::byte> bytes;
};

// Most are JPEG, as in real datasets; every seventh a PNG, every ninth a WebP.
MadeImage make_image(const ImageFolderSpec& spec, std::uint32_t index) {
  const std::uint32_t span = std::max(spec.max_side, spec.min_side) - spec.min_side + 1;
  const std::uint32_t random = (index + 1) * 2654435761U ^ spec.seed * 40503U;
  const std::uint32_t width = spec.min_side + random % span, height = spec.min_side + (random >> 11) % span;
  Pixels pixels = make_pixels(width, height, 3, spec.seed * 1000003U + index);
  if (!spec.only_jpeg && index % 7 == 3) return {".png", make_png({.pixels = std::move(pixels)})};
  if (!spec.only_jpeg && index % 9 == 5) return {".webp", make_webp({.pixels = std::move(pixels)})};
  const bool halved = index % 3 != 0;
  return {".jpg", make_jpeg({.pixels = std::move(pixels),
                             .quality = 80 + static_cast<int>(index % 15),
                             .h_samp = halved ? 2 : 1,
                             .v_samp = halved ? 2 : 1,
                             .progressive = index % 5 == 4,
                             .exif_orientation = index % 11 == 6 ? 6 : 0})};
}

std::string two_digits(const char* prefix, std::uint32_t number, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%s%0*u", prefix, digits, number);
  return text;
}

}  // namespace

std::vector<std::string> write_image_folder(const std::string& folder, const ImageFolderSpec& spec) {
  std::vector<std::string> paths;
  for (std::uint32_t i = 0; i < spec.images; ++i) {
    const std::string parent = spec.classes == 0 ? folder : folder + "/" + two_digits("class_", i % spec.classes, 2);
    std::filesystem::create_directories(parent);
    const MadeImage image = make_image(spec, i);
    paths.push_back(parent + "/" + two_digits("image_", i, 5) + image.extension);
    write_file(paths.back(), image.bytes);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

void write_file(const std::string& path, const std::string& text) {
  write_file(path, std::as_bytes(std::span(text)));
}

std::vector<std::byte> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

}  // namespace millrace
