#include "tests/bench/cuda/image_files.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace millrace::kernels::cuda::bench {

std::vector<ImageFile> read_files(const std::string& folder) {
  std::vector<ImageFile> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back({entry.path().lexically_relative(folder).string(), {}});
  }
  std::sort(files.begin(), files.end(), [](const ImageFile& a, const ImageFile& b) { return a.path < b.path; });
  for (ImageFile& file : files) {
    std::ifstream in(std::filesystem::path(folder) / file.path, std::ios::binary);
    file.bytes.assign(std::istreambuf_iterator<char>(in), {});
    if (!in) throw std::runtime_error("cannot read " + file.path);
  }
  return files;
}

Box random_resized_crop(Size size, std::mt19937& random) {
  std::uniform_real_distribution<double> scale(0.08, 1.0), ratio(std::log(3.0 / 4), std::log(4.0 / 3));
  for (int tries = 0; tries < 10; ++tries) {
    const double area = scale(random) * size.width * size.height, aspect = std::exp(ratio(random));
    const auto width = static_cast<int>(std::lround(std::sqrt(area * aspect)));
    const auto height = static_cast<int>(std::lround(std::sqrt(area / aspect)));
    if (width < 1 || height < 1 || width > size.width || height > size.height) continue;
    const int left = std::uniform_int_distribution<int>(0, size.width - width)(random);
    const int top = std::uniform_int_distribution<int>(0, size.height - height)(random);
    return {left, top, width, height};
  }
  const int width = std::max(1, std::min(size.width, size.height * 4 / 3));
  const int height = std::max(1, std::min(size.height, size.width * 4 / 3));
  return {(size.width - width) / 2, (size.height - height) / 2, width, height};
}

}  // namespace millrace::kernels::cuda::bench
