// Files of a folder in memory, and RandomResizedCrop's boxes. Host only. Values; thread-safe: plain functions.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/base/image_view.h"

namespace millrace::kernels::cuda::bench {

struct ImageFile {
  std::string path;  // from the folder
  std::vector<std::uint8_t> bytes;
};

// The regular files beneath `folder`, by path. Throws std::filesystem::filesystem_error or std::runtime_error.
std::vector<ImageFile> read_files(const std::string& folder);

// torchvision's RandomResizedCrop with its usual scale (8 % to all of the area) and ratio (3/4 to 4/3).
Box random_resized_crop(Size size, std::mt19937& random);

}  // namespace millrace::kernels::cuda::bench
