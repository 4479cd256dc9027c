#include "tests/support/pictures/test_images.h"

#include <spng.h>
#include <webp/encode.h>
#include <webp/mux.h>

#include <cstdio>  // before jpeglib.h, which needs FILE
#include <cstdlib>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include <jpeglib.h>

namespace millrace {
namespace {

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("test image: " + what);
}

void check_pixels(const Pixels& pixels, std::uint32_t min_channels, std::uint32_t max_channels) {
  require(pixels.channels >= min_channels && pixels.channels <= max_channels, "this format cannot hold these channels");
  require(pixels.data.size() == std::size_t{pixels.width} * pixels.height * pixels.channels, "pixels of another size");
}

std::vector<std::byte> copy_of(const void* data, std::size_t size) {
  const auto* bytes = static_cast<const std::byte*>(data);
  return {bytes, bytes + size};
}

void write_exif_marker(jpeg_compress_struct& jpeg, int orientation) {
  static constexpr char kExif[] = {'E', 'x', 'i', 'f', 0, 0};
  std::vector<std::byte> marker = copy_of(kExif, sizeof kExif);
  const std::vector<std::byte> tiff = make_exif(orientation);
  marker.insert(marker.end(), tiff.begin(), tiff.end());
  jpeg_write_marker(&jpeg, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(marker.data()),
                    static_cast<unsigned>(marker.size()));
}

void set_up(jpeg_compress_struct& jpeg, const JpegSpec& spec) {
  jpeg.image_width = spec.pixels.width;
  jpeg.image_height = spec.pixels.height;
  jpeg.input_components = static_cast<int>(spec.pixels.channels);
  jpeg.in_color_space = spec.pixels.channels == 1 ? JCS_GRAYSCALE : spec.pixels.channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, spec.quality, TRUE);
  if (spec.pixels.channels > 1) {
    jpeg.comp_info[0].h_samp_factor = spec.h_samp;
    jpeg.comp_info[0].v_samp_factor = spec.v_samp;
  }
  if (spec.pixels.channels == 4) {  // CMYK: black is sampled like cyan
    jpeg.comp_info[3].h_samp_factor = spec.h_samp;
    jpeg.comp_info[3].v_samp_factor = spec.v_samp;
  }
  jpeg.restart_interval = static_cast<unsigned>(spec.restart_interval);
  jpeg.optimize_coding = spec.optimise ? TRUE : FALSE;
  jpeg.arith_code = spec.arithmetic ? TRUE : FALSE;
  if (spec.progressive) jpeg_simple_progression(&jpeg);
}

spng_color_type png_colour(std::uint32_t channels) {
  switch (channels) {
    case 1:
      return SPNG_COLOR_TYPE_GRAYSCALE;
    case 2:
      return SPNG_COLOR_TYPE_GRAYSCALE_ALPHA;
    case 3:
      return SPNG_COLOR_TYPE_TRUECOLOR;
    default:
      return SPNG_COLOR_TYPE_TRUECOLOR_ALPHA;
  }
}

// Samples in PNG's own order: big-endian when 16 bits wide.
std::vector<std::uint8_t> png_samples(const Pixels& pixels, int bit_depth) {
  if (bit_depth == 8) return pixels.data;
  std::vector<std::uint8_t> wide;
  wide.reserve(pixels.data.size() * 2);
  for (const std::uint8_t value : pixels.data) {
    wide.push_back(value);
    wide.push_back(static_cast<std::uint8_t>(~value));
  }
  return wide;
}

std::vector<std::byte> with_exif(std::vector<std::byte> webp, int orientation) {
  const WebPData image{reinterpret_cast<const std::uint8_t*>(webp.data()), webp.size()};
  const std::unique_ptr<WebPMux, void (*)(WebPMux*)> mux(WebPMuxCreate(&image, 1), WebPMuxDelete);
  require(mux != nullptr, "WebPMuxCreate failed");
  const std::vector<std::byte> tiff = make_exif(orientation);
  const WebPData exif{reinterpret_cast<const std::uint8_t*>(tiff.data()), tiff.size()};
  require(WebPMuxSetChunk(mux.get(), "EXIF", &exif, 1) == WEBP_MUX_OK, "WebPMuxSetChunk failed");
  WebPData whole{};
  require(WebPMuxAssemble(mux.get(), &whole) == WEBP_MUX_OK, "WebPMuxAssemble failed");
  std::vector<std::byte> result = copy_of(whole.bytes, whole.size);
  WebPDataClear(&whole);
  return result;
}

}  // namespace

std::vector<std::byte> make_exif(int orientation) {
  // TIFF 6.0: byte order, 42, offset of the directory; one entry: tag 0x0112, type SHORT, count 1, value; no further
  // directory.
  const std::uint8_t value = static_cast<std::uint8_t>(orientation);
  const std::uint8_t tiff[] = {'I', 'I', 42, 0, 8, 0,     0, 0, 1, 0, 0x12, 0x01, 3,
                               0,   1,   0,  0, 0, value, 0, 0, 0, 0, 0,    0,    0};
  return copy_of(tiff, sizeof tiff);
}

std::vector<std::byte> make_jpeg(const JpegSpec& spec) {
  check_pixels(spec.pixels, 1, 4);
  require(spec.pixels.channels != 2, "this format cannot hold these channels");
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);  // ends the process with a message: a broken test
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  set_up(jpeg, spec);
  jpeg_start_compress(&jpeg, TRUE);
  if (spec.exif_orientation != 0) write_exif_marker(jpeg, spec.exif_orientation);
  const std::size_t stride = std::size_t{spec.pixels.width} * spec.pixels.channels;
  while (jpeg.next_scanline < jpeg.image_height) {
    JSAMPROW row = const_cast<JSAMPROW>(spec.pixels.data.data() + jpeg.next_scanline * stride);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::vector<std::byte> result = copy_of(memory, size);
  std::free(memory);
  return result;
}

std::vector<std::byte> make_png(const PngSpec& spec) {
  check_pixels(spec.pixels, 1, 4);
  require(spec.bit_depth == 8 || spec.bit_depth == 16, "a PNG of ours has 8 or 16 bits a sample");
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> png(spng_ctx_new(SPNG_CTX_ENCODER), spng_ctx_free);
  require(png != nullptr, "spng_ctx_new failed");
  spng_set_option(png.get(), SPNG_ENCODE_TO_BUFFER, 1);
  spng_ihdr header{
      .width = spec.pixels.width,
      .height = spec.pixels.height,
      .bit_depth = static_cast<std::uint8_t>(spec.bit_depth),
      .color_type = static_cast<std::uint8_t>(png_colour(spec.pixels.channels)),
      .compression_method = 0,
      .filter_method = 0,
      .interlace_method = static_cast<std::uint8_t>(spec.interlaced ? SPNG_INTERLACE_ADAM7 : SPNG_INTERLACE_NONE)};
  require(spng_set_ihdr(png.get(), &header) == 0, "spng_set_ihdr failed");
  std::vector<std::byte> tiff = make_exif(spec.exif_orientation);
  spng_exif exif{.length = tiff.size(), .data = reinterpret_cast<char*>(tiff.data())};
  if (spec.exif_orientation != 0) require(spng_set_exif(png.get(), &exif) == 0, "spng_set_exif failed");
  const std::vector<std::uint8_t> samples = png_samples(spec.pixels, spec.bit_depth);
  const int error = spng_encode_image(png.get(), samples.data(), samples.size(), SPNG_FMT_RAW, SPNG_ENCODE_FINALIZE);
  require(error == 0, std::string("spng_encode_image: ") + spng_strerror(error));
  std::size_t size = 0;
  int buffer_error = 0;
  void* memory = spng_get_png_buffer(png.get(), &size, &buffer_error);
  require(memory != nullptr, "spng_get_png_buffer failed");
  std::vector<std::byte> result = copy_of(memory, size);
  std::free(memory);
  return result;
}

std::vector<std::byte> make_png_header(std::uint32_t width, std::uint32_t height) {
  std::vector<std::byte> png;
  const auto put = [&](std::initializer_list<unsigned> bytes) {
    for (const unsigned byte : bytes) png.push_back(static_cast<std::byte>(byte));
  };
  const auto put32 = [&](std::uint32_t value) { put({value >> 24, value >> 16 & 255, value >> 8 & 255, value & 255}); };
  put({0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n', 0, 0, 0, 13, 'I', 'H', 'D', 'R'});
  put32(width);
  put32(height);
  put({8, 2, 0, 0, 0});
  std::uint32_t crc = 0xFFFFFFFF;  // PNG, clause 5.5: over the chunk's type and data
  for (std::size_t i = 12; i < png.size(); ++i) {
    crc ^= static_cast<std::uint32_t>(png[i]);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320 : 0);
  }
  put32(~crc);
  return png;
}

std::vector<std::byte> make_webp(const WebpSpec& spec) {
  check_pixels(spec.pixels, 3, 4);
  const int width = static_cast<int>(spec.pixels.width), height = static_cast<int>(spec.pixels.height);
  const int stride = width * static_cast<int>(spec.pixels.channels);
  const std::uint8_t* data = spec.pixels.data.data();
  const bool alpha = spec.pixels.channels == 4;
  std::uint8_t* memory = nullptr;
  std::size_t size = 0;
  if (spec.lossless)
    size = alpha ? WebPEncodeLosslessRGBA(data, width, height, stride, &memory)
                 : WebPEncodeLosslessRGB(data, width, height, stride, &memory);
  else
    size = alpha ? WebPEncodeRGBA(data, width, height, stride, spec.quality, &memory)
                 : WebPEncodeRGB(data, width, height, stride, spec.quality, &memory);
  require(size > 0, "libwebp cannot encode this");
  std::vector<std::byte> result = copy_of(memory, size);
  WebPFree(memory);
  return spec.exif_orientation == 0 ? result : with_exif(std::move(result), spec.exif_orientation);
}

}  // namespace millrace
