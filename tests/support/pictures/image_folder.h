// A dataset on disc made in code: class folders with JPEG, PNG and WebP files of mixed sizes. The same names and bytes
// for the same spec.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace millrace {

struct ImageFolderSpec {
  std::uint32_t images = 32;
  std::uint32_t classes = 4;    // folders class_00, class_01, ...; 0: all files in the folder itself
  std::uint32_t min_side = 40;  // of a picture, in pixels
  std::uint32_t max_side = 200;
  std::uint32_t seed = 1;
  bool only_jpeg = false;
};

// Writes the images beneath `folder`, which is made when it is not there. Their paths, in the order of the daemon's
// listing (by bytes).
std::vector<std::string> write_image_folder(const std::string& folder, const ImageFolderSpec& spec);

// Throws std::runtime_error when the file cannot be written or read: a broken test.
void write_file(const std::string& path, std::span<const std::byte> bytes);
void write_file(const std::string& path, const std::string& text);
std::vector<std::byte> read_file(const std::string& path);

}  // namespace millrace
