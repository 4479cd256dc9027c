// Files of formats that want no library.
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/l3/encoding/encoder.h"
#include "tests/support/pictures/test_images.h"

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

void check_pixels(const Pixels& pixels) {
  if (pixels.data.size() != std::size_t{pixels.width} * pixels.height * pixels.channels)
    throw std::runtime_error("test image: pixels of another size");
}

std::string little(std::uint32_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += i < 4 ? static_cast<char>(number >> 8 * i & 255U) : '\0';
  return text;
}

// Blue, green, red; alpha behind them.
std::string bmp_pixel(const std::uint8_t* samples, std::uint32_t channels) {
  std::string pixel(samples, samples + channels);
  if (channels > 1) std::swap(pixel[0], pixel[2]);
  return pixel;
}

// A run for each pixel, an end for each row.
std::string runs_of(std::string_view row) {
  std::string runs;
  for (const char value : row) runs += std::string("\1", 1) + value;
  return runs + std::string("\0\0", 2);
}

std::string bmp_rows(const BmpSpec& spec) {
  const Pixels& pixels = spec.pixels;
  std::string rows;
  for (std::uint32_t i = 0; i < pixels.height; ++i) {
    const std::uint32_t y = spec.top_down ? i : pixels.height - 1 - i;
    std::string row;
    for (std::uint32_t x = 0; x < pixels.width; ++x)
      row += bmp_pixel(&pixels.data[(std::size_t{y} * pixels.width + x) * pixels.channels], pixels.channels);
    row += spec.run_length ? "" : std::string((4 - row.size() % 4) % 4, '\0');
    rows += spec.run_length ? runs_of(row) : row;
  }
  return rows;
}

std::string gif_palette() {
  std::string palette;
  for (int i = 0; i < 256; ++i) {
    for (const std::uint8_t value : gif_colour(static_cast<std::uint8_t>(i))) palette += static_cast<char>(value);
  }
  return palette;
}

// GIF89a, 22: codes of 9 bits in blocks, with a clear code now and then so that they stay so long.
std::string gif_data(const std::string& indices) {
  std::string bytes;
  std::uint32_t held = 0;
  int bits = 0;
  const auto put = [&](std::uint32_t code) {
    held |= code << bits;
    for (bits += 9; bits >= 8; bits -= 8, held >>= 8U) bytes += static_cast<char>(held & 255U);
  };
  constexpr std::uint32_t kClear = 256, kEnd = 257;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (i % 200 == 0) put(kClear);
    put(static_cast<std::uint8_t>(indices[i]));
  }
  put(kEnd);
  if (bits > 0) bytes += static_cast<char>(held & 255U);
  std::string blocks = "\x08";
  for (std::size_t at = 0; at < bytes.size(); at += 255) {
    const std::string block = bytes.substr(at, 255);
    blocks += static_cast<char>(block.size()) + block;
  }
  return blocks + '\0';
}

std::string gif_picture(const Pixels& pixels, bool interlaced) {
  std::string rows;
  constexpr struct { std::uint32_t first, step; } kPasses[] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}};
  const auto add = [&](std::uint32_t first, std::uint32_t step) {
    for (std::uint32_t y = first; y < pixels.height; y += step)
      rows.append(pixels.data.begin() + std::ptrdiff_t{y} * pixels.width,
                  pixels.data.begin() + std::ptrdiff_t{y + 1} * pixels.width);
  };
  if (interlaced) {
    for (const auto& pass : kPasses) add(pass.first, pass.step);
  } else {
    add(0, 1);
  }
  return "," + little(0, 4) + little(pixels.width, 2) + little(pixels.height, 2) +
         (interlaced ? "\x40" : std::string(1, '\0')) + gif_data(rows);
}

}  // namespace

std::vector<std::byte> make_pnm(const PnmSpec& spec) {
  const Pixels& pixels = spec.pixels;
  check_pixels(pixels);
  std::string text = pnm_header(spec);
  if (spec.bits == 1) return file_of(text + bits_of(pixels));
  for (const std::uint8_t value : pixels.data) {
    text += static_cast<char>(value);
    if (spec.bits == 16) text += static_cast<char>(~value);
  }
  return file_of(text);
}

std::vector<std::byte> make_bmp(const BmpSpec& spec) {
  const Pixels& pixels = spec.pixels;
  check_pixels(pixels);
  std::string behind;  // the header
  for (std::uint32_t i = 0; i < 256 && pixels.channels == 1; ++i) behind += little(i | i << 8U | i << 16U, 4);
  if (pixels.channels == 4) {  // BITMAPV3HEADER's masks
    for (const std::uint32_t mask : {0xFF0000U, 0xFF00U, 0xFFU, 0xFF000000U}) behind += little(mask, 4);
  }
  const std::uint32_t info = pixels.channels == 4 ? 56 : 40, compression = spec.run_length        ? 1
                                                                           : pixels.channels == 4 ? 3
                                                                                                  : 0;
  const auto begin = static_cast<std::uint32_t>(14 + 40 + behind.size());
  const std::uint32_t height = spec.top_down ? 0U - pixels.height : pixels.height;
  return file_of("BM" + little(0, 8) + little(begin, 4) + little(info, 4) + little(pixels.width, 4) +
                 little(height, 4) + little(1, 2) + little(8 * pixels.channels, 2) + little(compression, 4) +
                 std::string(20, '\0') + behind + bmp_rows(spec));
}

std::array<std::uint8_t, 3> gif_colour(std::uint8_t number) {
  return {static_cast<std::uint8_t>(number * 7 + 3), static_cast<std::uint8_t>(255 - number),
          static_cast<std::uint8_t>(number ^ 0x5A)};
}

std::vector<std::byte> make_gif(const GifSpec& spec) {
  const Pixels& pixels = spec.pixels;
  check_pixels(pixels);
  std::string text =
      "GIF89a" + little(pixels.width, 2) + little(pixels.height, 2) + (spec.coloured ? "\xF7" : "\x77") + little(0, 2);
  if (spec.coloured) text += gif_palette();
  if (spec.animated) text += "!\xFF\x0BNETSCAPE2.0" + std::string("\3\1\0\0\0", 5);
  if (spec.transparent) text += std::string("!\xF9\4\1\0\0\0\0", 8);
  text += gif_picture(pixels, spec.interlaced);
  const std::vector<std::uint8_t> nothing(pixels.data.size());
  if (spec.animated) text += gif_picture({pixels.width, pixels.height, 1, nothing}, false);
  return file_of(text + ";");
}

std::vector<std::byte> make_l3(const L3Spec& spec) {
  const Pixels& pixels = spec.pixels;
  check_pixels(pixels);
  const int bytes = spec.bit_depth / 8;
  std::vector<std::uint8_t> samples, palette;
  for (const std::uint8_t sample : pixels.data) {
    if (bytes == 2) samples.push_back(static_cast<std::uint8_t>(~sample));
    samples.push_back(sample);
  }
  for (int i = 0; spec.coloured && i < 256; ++i) {
    const std::array<std::uint8_t, 3> colour = gif_colour(static_cast<std::uint8_t>(i));
    palette.insert(palette.end(), colour.begin(), colour.end());
  }
  const auto channels = static_cast<int>(pixels.channels);
  std::vector<std::uint8_t> file;
  const std::string refused =
      kernels::l3::encode({.samples = {samples.data(),
                                       {static_cast<int>(pixels.width), static_cast<int>(pixels.height)},
                                       channels,
                                       bytes,
                                       static_cast<std::ptrdiff_t>(pixels.width) * channels * bytes},
                           .orientation = spec.orientation,
                           .palette = palette,
                           .colour_bytes = spec.coloured ? 3 : 0},
                          kernels::l3::Effort::kBest, kernels::best_target(), file);
  if (!refused.empty()) throw std::runtime_error("test image: L3 cannot hold " + refused);
  return file_of(std::string(file.begin(), file.end()));
}

}  // namespace millrace
