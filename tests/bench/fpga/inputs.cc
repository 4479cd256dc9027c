#include "tests/bench/fpga/inputs.h"

// jpeglib.h needs FILE and size_t before it.
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include <jpeglib.h>

namespace millrace::bench {
namespace {

constexpr std::uint32_t kTile = 160;

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) names.push_back(entry.path().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::uint8_t> bytes_of(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Failure {
  jpeg_error_mgr base;
  std::jmp_buf back;
};

// nullopt: damaged, or not in colour.
std::optional<Pixels> decode(const std::vector<std::uint8_t>& file) {
  jpeg_decompress_struct info{};
  Failure failure{};
  info.err = jpeg_std_error(&failure.base);
  failure.base.error_exit = [](j_common_ptr at) { std::longjmp(reinterpret_cast<Failure*>(at->err)->back, 1); };
  failure.base.output_message = [](j_common_ptr) {};
  Pixels pixels;
  if (setjmp(failure.back) != 0) {
    jpeg_destroy_decompress(&info);
    return std::nullopt;
  }
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, file.data(), file.size());
  jpeg_read_header(&info, TRUE);
  if (info.num_components != 3) {
    jpeg_destroy_decompress(&info);
    return std::nullopt;
  }
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  pixels = {info.output_width, info.output_height, 3, {}};
  pixels.data.resize(std::size_t{pixels.width} * pixels.height * 3);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = pixels.data.data() + std::size_t{info.output_scanline} * pixels.width * 3;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return pixels;
}

// Tiles of the photographs, one after the other; a further round takes them from further right and below.
Pixels mosaic(const hls::model::Input& input, const std::vector<Pixels>& photographs, std::size_t which) {
  const auto width = static_cast<std::uint32_t>(input.width), height = static_cast<std::uint32_t>(input.height);
  Pixels made{width, height, 3, std::vector<std::uint8_t>(std::size_t{width} * height * 3)};
  std::size_t next = which;
  for (std::uint32_t top = 0; top < height; top += kTile) {
    for (std::uint32_t left = 0; left < width; left += kTile, ++next) {
      const Pixels& from = photographs[next % photographs.size()];
      const std::size_t begin = next / photographs.size() * 40 % kTile;
      const std::uint32_t columns = std::min(kTile, width - left), rows = std::min(kTile, height - top);
      for (std::uint32_t row = 0; row < rows; ++row) {
        const auto* source = from.data.data() + ((begin + row) * from.width + begin) * 3;
        std::copy_n(source, std::size_t{columns} * 3, made.data.data() + (std::size_t{top + row} * width + left) * 3);
      }
    }
  }
  return made;
}

}  // namespace

std::vector<hls::model::Picture> read_folder(const std::string& folder) {
  std::vector<hls::model::Picture> pictures;
  for (const std::string& name : files_of(folder)) {
    auto picture = hls::model::read_picture(bytes_of(name));
    if (picture && picture->packed_bytes > 0) pictures.push_back(*std::move(picture));
  }
  return pictures;
}

std::vector<Pixels> read_pixels(const std::string& folder, std::size_t most) {
  std::vector<Pixels> all;
  for (const std::string& name : files_of(folder)) {
    if (all.size() == most) break;
    auto pixels = decode(bytes_of(name));
    if (pixels && pixels->width >= 2 * kTile && pixels->height >= 2 * kTile) all.push_back(*std::move(pixels));
  }
  return all;
}

hls::model::Picture stand_in(const hls::model::Input& input, const std::vector<Pixels>& photographs,
                             std::size_t which) {
  const double wanted = 1.5 * input.width * input.height / input.ratio;
  JpegSpec spec{.pixels = mosaic(input, photographs, which)};
  std::vector<std::byte> best;
  const auto off = [wanted](const std::vector<std::byte>& file) {
    return std::abs(static_cast<double>(file.size()) - wanted);
  };
  for (int low = 1, high = 100; low <= high;) {
    spec.quality = (low + high) / 2;
    std::vector<std::byte> file = make_jpeg(spec);
    if (static_cast<double>(file.size()) < wanted)
      low = spec.quality + 1;
    else
      high = spec.quality - 1;
    if (best.empty() || off(file) < off(best)) best = std::move(file);
  }
  auto picture = hls::model::read_picture({reinterpret_cast<const std::uint8_t*>(best.data()), best.size()});
  if (!picture) std::abort();  // this very encoder's files are what decoders take
  return *std::move(picture);
}

}  // namespace millrace::bench
