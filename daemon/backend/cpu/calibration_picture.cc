#include "daemon/backend/cpu/calibration_picture.h"

#include <jpeglib.h>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>

namespace millrace {
namespace {

constexpr int kQuality = 90;

// A pixel's share of grain, 0 ... 15.
std::uint32_t grain(std::uint32_t x, std::uint32_t y) {
  std::uint32_t bits = x * 0x9E3779B1U ^ y * 0x85EBCA77U;
  bits ^= bits >> 15U;
  bits *= 0x2C1B3C6DU;
  return bits >> 28U;
}

// Blocks of colour with shades within and, in every second one, coarse patterns.
std::uint8_t sample(std::uint32_t x, std::uint32_t y, std::uint32_t channel) {
  const std::uint32_t patch = grain(x / 48 + 7 * channel, y / 40);
  const std::uint32_t shade = (x * (patch + 1) + y * (16 - patch)) / 24;
  const std::uint32_t pattern = (patch & 1U) != 0 ? grain(x / 3, y / 2) * 4 : 0;
  return static_cast<std::uint8_t>((patch * 11 + shade % 64 + pattern + grain(x, y)) & 255U);
}

std::vector<std::uint8_t> made_up_pixels(Size size) {
  std::vector<std::uint8_t> pixels;
  pixels.reserve(std::size_t{size.width} * size.height * 3);
  for (std::uint32_t y = 0; y < size.height; ++y) {
    for (std::uint32_t x = 0; x < size.width; ++x) {
      for (std::uint32_t channel = 0; channel < 3; ++channel) pixels.push_back(sample(x, y, channel));
    }
  }
  return pixels;
}

struct Encoder {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  std::jmp_buf failed;
  unsigned char* data = nullptr;
  unsigned long size = 0;
};

[[noreturn]] void fail(j_common_ptr info) {
  std::longjmp(static_cast<Encoder*>(info->client_data)->failed, 1);
}

// No object with a destructor lives in here: longjmp passes through. false: no memory.
bool encode(Encoder& encoder, const std::uint8_t* pixels, Size size, int chroma_sampling) {
  jpeg_compress_struct& info = encoder.info;
  info.err = jpeg_std_error(&encoder.errors);
  encoder.errors.error_exit = fail;
  info.client_data = &encoder;
  if (setjmp(encoder.failed) != 0) return false;
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, &encoder.data, &encoder.size);
  info.image_width = size.width;
  info.image_height = size.height;
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, kQuality, TRUE);
  info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = chroma_sampling;
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < size.height) {
    auto* row = const_cast<JSAMPROW>(pixels + std::size_t{info.next_scanline} * size.width * 3);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  return true;
}

}  // namespace

std::vector<CalibrationPicture> calibration_pictures(Size size) {
  const std::vector<std::uint8_t> pixels = made_up_pixels(size);
  std::vector<CalibrationPicture> pictures;
  for (const int chroma_sampling : {1, 2}) {
    Encoder encoder;
    const bool encoded = encode(encoder, pixels.data(), size, chroma_sampling);
    const auto* const bytes = reinterpret_cast<const std::byte*>(encoder.data);
    if (encoded) pictures.push_back({{bytes, bytes + encoder.size}, SourceInfo{ImageFormat::kJpeg, size, 1}});
    jpeg_destroy_compress(&encoder.info);
    std::free(encoder.data);
  }
  return pictures;
}

}  // namespace millrace
