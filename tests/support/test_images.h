// Images made in code, so that no test needs a file from outside: seeded pixels and the encoders that put them into
// each format. An encoder that fails throws std::runtime_error: a broken test, not a result. Thread-safe: plain
// functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace {

// Interleaved samples, `channels` a pixel, rows without padding.
struct Pixels {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t channels = 0;
  std::vector<std::uint8_t> data;
};

// A picture with what decoders and resamplers trip over: smooth gradients, hard edges, thin lines and noise. The same
// for the same arguments.
Pixels make_pixels(std::uint32_t width, std::uint32_t height, std::uint32_t channels, std::uint32_t seed);

struct JpegSpec {
  Pixels pixels;  // 1 channel: grey; 3: RGB, stored as YCbCr; 4: CMYK with Adobe's marker, stored as given
  int quality = 90;
  int h_samp = 2, v_samp = 2;  // of the first component, 1..4; the others have 1
  bool progressive = false;
  int restart_interval = 0;  // in MCUs; 0: none
  int exif_orientation = 0;  // 0: no EXIF at all
  bool optimise = false;     // Huffman tables
  bool arithmetic = false;   // coding instead of Huffman's
};
std::vector<std::byte> make_jpeg(const JpegSpec& spec);

struct PngSpec {
  Pixels pixels;  // 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA
  bool interlaced = false;
  int exif_orientation = 0;
  int bit_depth = 8;  // 8 or 16; with 16 the high byte is the pixel's, the low byte its complement
};
std::vector<std::byte> make_png(const PngSpec& spec);

// Nothing of a PNG but signature and IHDR, 33 bytes: its header is right and claims `width` x `height` pixels, RGB.
std::vector<std::byte> make_png_header(std::uint32_t width, std::uint32_t height);

struct WebpSpec {
  Pixels pixels;  // 3 RGB or 4 RGBA
  bool lossless = false;
  float quality = 90;
  int exif_orientation = 0;
};
std::vector<std::byte> make_webp(const WebpSpec& spec);

struct PnmSpec {
  Pixels pixels;  // 1 channel: PGM; 3: PPM; 2 and 4: PAM with alpha
  int bits = 8;   // 1: PBM, of 1 channel, where samples under 128 are black; 16: the high byte is the pixel's
  std::uint32_t most = 255;  // the sample that is white; without effect on what is written of `pixels`
};
std::vector<std::byte> make_pnm(const PnmSpec& spec);

// A TIFF block with one entry, the orientation: what JPEG's APP1 (after "Exif\0\0"), PNG's eXIf and WebP's EXIF chunk
// carry.
std::vector<std::byte> make_exif(int orientation);

}  // namespace millrace
