// Images made in code, so that no test needs a file from outside: seeded pixels and the encoders that put them into
// each format. An encoder that fails throws std::runtime_error: a broken test, not a result. Thread-safe: plain
// functions.
#pragma once

#include <array>
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

struct BmpSpec {
  Pixels pixels;  // 1 channel: 8 bits and a palette of greys; 3: 24 bits; 4: 32 bits with alpha (bit fields)
  bool top_down = false;
  bool run_length = false;  // of 1 channel: RLE8
};
std::vector<std::byte> make_bmp(const BmpSpec& spec);

struct L3Spec {
  Pixels pixels;          // 1 grey or numbers of colours, 2 grey and alpha, 3 RGB, 4 RGBA
  int bit_depth = 8;      // 8 or 16; with 16 the high byte is the pixel's, the low byte its complement
  int orientation = 1;    // the head's
  bool coloured = false;  // of 1 channel: a palette, gif_colour()
};
std::vector<std::byte> make_l3(const L3Spec& spec);

struct GifSpec {
  Pixels pixels;         // 1 channel: the numbers of colours
  bool coloured = true;  // a palette: gif_colour(); else none
  bool interlaced = false;
  bool transparent = false;  // colour 0 is
  bool animated = false;     // shown over and over, with a second picture of colour 0
};
// Its codes all have 9 bits: nothing is compressed.
std::vector<std::byte> make_gif(const GifSpec& spec);
// The colours of its palette, no two the same.
std::array<std::uint8_t, 3> gif_colour(std::uint8_t number);

struct TiffSpec {
  Pixels pixels;  // 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA or CMYK
  bool inks = false;
  int bit_depth = 8;    // 8 or 16; with 16 the high byte is the pixel's, the low byte its complement
  int compression = 1;  // TIFF's number: 1 none, 5 LZW, 7 JPEG, 8 Deflate, 32773 PackBits
  bool tiled = false;   // 32 x 16
  bool planes = false;
  int orientation = 0;  // 0: none
};
std::vector<std::byte> make_tiff(const TiffSpec& spec);  // by libtiff

struct AvifSpec {
  Pixels pixels;        // 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA
  int bit_depth = 8;    // 8, 10 or 12: the others are zero
  int orientation = 0;  // by "irot" and "imir"; 0: none
  bool animated = false;
};
// Without loss. By libavif; REQUIRES: can_make_avif(), as builds that found its headers can.
std::vector<std::byte> make_avif(const AvifSpec& spec);
bool can_make_avif();

// A TIFF block with one entry, the orientation: what JPEG's APP1 (after "Exif\0\0"), PNG's eXIf and WebP's EXIF chunk
// carry.
std::vector<std::byte> make_exif(int orientation);

}  // namespace millrace
