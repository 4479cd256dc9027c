#include "tests/conformance/slow_path.h"

#ifdef MILLRACE_AVIF_SONAME
#include <avif/avif.h>
#endif
#include <spng.h>
#include <tiffio.h>
#include <unistd.h>
#include <webp/decode.h>

#include <algorithm>
#include <cstdio>  // before jpeglib.h, which needs FILE
#include <memory>
#include <stdexcept>
#include <string>

#include <jpeglib.h>

#include "kernels/cpu/orient.h"
#include "kernels/cpu/resample.h"
#include "kernels/cpu/store.h"
#include "kernels/l3/decoder.h"
#include "kernels/l3/image.h"
#include "kernels/l3/reference.h"
#include "kernels/tensor/reference.h"
#include "tests/support/jpeg/mrp_file.h"
#include "tests/support/pictures/heic_files.h"

namespace millrace {
namespace {

const std::uint8_t* data_of(ByteView bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

Pixels pixels_of(std::uint32_t width, std::uint32_t height, std::uint32_t channels) {
  return {width, height, channels, std::vector<std::uint8_t>(std::size_t{width} * height * channels)};
}

Pixels decode_jpeg_slowly(ByteView bytes) {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);  // ends the process with a message: a broken test
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, data_of(bytes), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg_start_decompress(&jpeg);
  Pixels pixels = pixels_of(jpeg.output_width, jpeg.output_height, static_cast<std::uint32_t>(jpeg.output_components));
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = pixels.data.data() + std::size_t{jpeg.output_scanline} * pixels.width * pixels.channels;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return pixels;
}

Pixels decode_png_slowly(ByteView bytes) {
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> png(spng_ctx_new(0), spng_ctx_free);
  spng_ihdr header{};
  if (spng_set_png_buffer(png.get(), bytes.data(), bytes.size()) != 0 || spng_get_ihdr(png.get(), &header) != 0)
    throw std::runtime_error("slow path: not a PNG");
  const bool grey = header.color_type == SPNG_COLOR_TYPE_GRAYSCALE;
  Pixels pixels = pixels_of(header.width, header.height, grey ? 1 : 3);
  if (spng_decode_image(png.get(), pixels.data.data(), pixels.data.size(), grey ? SPNG_FMT_G8 : SPNG_FMT_RGB8, 0) != 0)
    throw std::runtime_error("slow path: a broken PNG");
  return pixels;
}

Pixels decode_webp_slowly(ByteView bytes) {
  int width = 0, height = 0;
  std::uint8_t* const rgb = WebPDecodeRGB(data_of(bytes), bytes.size(), &width, &height);
  if (rgb == nullptr) throw std::runtime_error("slow path: a broken WebP");
  Pixels pixels = pixels_of(static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height), 3);
  std::copy(rgb, rgb + pixels.data.size(), pixels.data.begin());
  WebPFree(rgb);
  return pixels;
}

// PGM and PPM as make_pnm() writes them.
Pixels decode_pnm_slowly(ByteView bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  unsigned width = 0, height = 0;
  if (std::sscanf(text.c_str() + 2, "%u %u", &width, &height) != 2)
    throw std::runtime_error("slow path: no PNM picture");
  Pixels pixels = pixels_of(width, height, text[1] == '5' ? 1 : 3);
  std::copy(text.end() - static_cast<std::ptrdiff_t>(pixels.data.size()), text.end(), pixels.data.begin());
  return pixels;
}

// By a file, and libtiff's own way to make pixels of all kinds.
Pixels decode_tiff_slowly(ByteView bytes) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  if (!file || std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size() || std::fflush(file.get()) != 0)
    throw std::runtime_error("slow path: no file for a TIFF");
  std::rewind(file.get());
  const std::unique_ptr<TIFF, void (*)(TIFF*)> tiff(TIFFFdOpen(dup(fileno(file.get())), "slow path", "r"), TIFFClose);
  std::uint32_t width = 0, height = 0;
  std::uint16_t samples = 0;
  if (!tiff || TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width) != 1 ||
      TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height) != 1)
    throw std::runtime_error("slow path: no TIFF");
  TIFFGetField(tiff.get(), TIFFTAG_SAMPLESPERPIXEL, &samples);
  std::vector<std::uint32_t> raster(std::size_t{width} * height);
  if (TIFFReadRGBAImageOriented(tiff.get(), width, height, raster.data(), ORIENTATION_TOPLEFT) != 1)
    throw std::runtime_error("slow path: a broken TIFF");
  Pixels pixels = pixels_of(width, height, samples == 1 ? 1 : 3);
  for (std::size_t i = 0; i < raster.size(); ++i) {
    for (std::uint32_t c = 0; c < pixels.channels; ++c)
      pixels.data[i * pixels.channels + c] = static_cast<std::uint8_t>(raster[i] >> 8 * c);
  }
  return pixels;
}

#ifdef MILLRACE_AVIF_SONAME
// By another decoder than the daemon's, as make_avif() writes them: planes of blue, green and red, or grey.
Pixels decode_avif_slowly(ByteView bytes) {
  const std::unique_ptr<avifDecoder, void (*)(avifDecoder*)> decoder(avifDecoderCreate(), avifDecoderDestroy);
  const std::unique_ptr<avifImage, void (*)(avifImage*)> image(avifImageCreateEmpty(), avifImageDestroy);
  decoder->codecChoice = AVIF_CODEC_CHOICE_AOM;
  const avifResult done = avifDecoderReadMemory(decoder.get(), image.get(), data_of(bytes), bytes.size());
  if (done != AVIF_RESULT_OK) throw std::runtime_error(std::string("slow path: AVIF: ") + avifResultToString(done));
  const bool grey = image->yuvFormat == AVIF_PIXEL_FORMAT_YUV400;
  Pixels pixels = pixels_of(image->width, image->height, grey ? 1 : 3);
  constexpr int kPlanes[] = {AVIF_CHAN_V, AVIF_CHAN_Y, AVIF_CHAN_U};
  for (std::uint32_t y = 0; y < pixels.height; ++y) {
    for (std::uint32_t x = 0; x < pixels.width; ++x) {
      for (std::uint32_t c = 0; c < pixels.channels; ++c) {
        const int plane = grey ? AVIF_CHAN_Y : kPlanes[c];
        const std::uint8_t* const row = image->yuvPlanes[plane] + std::size_t{y} * image->yuvRowBytes[plane];
        const int most = (1 << image->depth) - 1;
        const int value = image->depth > 8 ? reinterpret_cast<const std::uint16_t*>(row)[x] : row[x];
        pixels.data[(std::size_t{y} * pixels.width + x) * pixels.channels + c] =
            static_cast<std::uint8_t>((value * 255 + most / 2) / most);
      }
    }
  }
  return pixels;
}
#endif

// As make_bmp() writes them: rows bottom up.
Pixels decode_bmp_slowly(ByteView bytes) {
  const std::uint8_t* const file = data_of(bytes);
  const std::uint32_t channels = file[28] / 8U, runs = file[30];
  Pixels pixels = pixels_of(file[18] | file[19] << 8U, file[22] | file[23] << 8U, channels);
  const std::uint8_t* from = file + (file[10] | file[11] << 8U);
  for (std::uint32_t y = pixels.height; y-- > 0; from += runs != 0 ? 2 : (4 - pixels.width * channels % 4) % 4) {
    for (std::uint32_t x = 0; x < pixels.width; ++x, from += runs != 0 ? 2 : channels) {
      std::uint8_t* const to = &pixels.data[(std::size_t{y} * pixels.width + x) * channels];
      for (std::uint32_t c = 0; c < channels; ++c) to[c] = runs != 0 ? from[1] : from[channels - 1 - c];
    }
  }
  return pixels;
}

// As make_gif() writes them: codes of 9 bits in blocks, of which those below 256 are pixels.
std::vector<std::uint8_t> gif_indices(const std::uint8_t* block) {
  std::vector<std::uint8_t> indices;
  std::uint32_t held = 0;
  int bits = 0;
  for (; *block != 0; block += 1 + *block) {
    for (int i = 1; i <= *block; ++i) {
      held |= std::uint32_t{block[i]} << bits;
      bits += 8;
      if (bits < 9) continue;
      if ((held & 511U) < 256) indices.push_back(static_cast<std::uint8_t>(held));
      held >>= 9U;
      bits -= 9;
    }
  }
  return indices;
}

Pixels decode_gif_slowly(ByteView bytes) {
  const std::uint8_t* const file = data_of(bytes);
  const bool coloured = (file[10] & 0x80U) != 0;
  const std::uint8_t* const picture = file + 13 + (coloured ? 768 : 0);
  const std::vector<std::uint8_t> indices = gif_indices(picture + 11);
  Pixels pixels = pixels_of(file[6] | file[7] << 8U, file[8] | file[9] << 8U, coloured ? 3 : 1);
  std::size_t at = 0;
  const auto row = [&](std::uint32_t y) {
    for (std::uint32_t x = 0; x < pixels.width; ++x, ++at) {
      const std::array<std::uint8_t, 3> colour = gif_colour(indices.at(at));
      for (std::uint32_t c = 0; c < pixels.channels; ++c)
        pixels.data[(std::size_t{y} * pixels.width + x) * pixels.channels + c] = coloured ? colour[c] : indices[at];
    }
  };
  if ((picture[9] & 0x40U) == 0) {
    for (std::uint32_t y = 0; y < pixels.height; ++y) row(y);
    return pixels;
  }
  for (const auto& [first, step] : {std::pair{0U, 8U}, std::pair{4U, 8U}, std::pair{2U, 4U}, std::pair{1U, 2U}}) {
    for (std::uint32_t y = first; y < pixels.height; y += step) row(y);
  }
  return pixels;
}

kernels::U8View view_of(const Pixels& pixels) {
  return {pixels.data.data(), static_cast<int>(pixels.width), static_cast<int>(pixels.height),
          static_cast<int>(pixels.channels), static_cast<std::ptrdiff_t>(pixels.width) * pixels.channels};
}

kernels::MutableU8View view_of(Pixels& pixels) {
  return {pixels.data.data(), static_cast<int>(pixels.width), static_cast<int>(pixels.height),
          static_cast<int>(pixels.channels), static_cast<std::ptrdiff_t>(pixels.width) * pixels.channels};
}

// Tile by tile, by the reference. Of 8 bits, grey, RGB or with a palette of gif_colour().
Pixels decode_l3_slowly(ByteView bytes) {
  using namespace kernels::l3;
  Image image;
  if (!image.read({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, Check::kChecksums).empty())
    return {};
  const Head& head = image.head();
  const bool has_colours = head.colours != 0;
  Pixels pixels = pixels_of(static_cast<std::uint32_t>(head.size.width), static_cast<std::uint32_t>(head.size.height),
                            has_colours ? 3U : static_cast<std::uint32_t>(head.channels));
  std::vector<std::uint8_t> planes(head.tiles() * kMostPlaneBytes);
  for (std::size_t i = 0; i < head.tiles(); ++i)
    static_cast<void>(reference::decode_tile(image.tile_shape(i), image.tile(i), planes.data() + i * kMostPlaneBytes));
  for (std::size_t i = 0; i < pixels.data.size(); ++i) {
    const std::size_t pixel = i / pixels.channels, c = i % pixels.channels;
    const std::size_t x = pixel % pixels.width, y = pixel / pixels.width;
    const std::size_t tile = y / kTileSide * static_cast<std::size_t>(head.across()) + x / kTileSide;
    const std::uint8_t* const plane = planes.data() + tile * kMostPlaneBytes;
    const std::size_t at = y % kTileSide * kTileSide + x % kTileSide;
    pixels.data[i] = has_colours ? gif_colour(plane[at])[c] : plane[c * kTilePixels + at];
  }
  return pixels;
}

Pixels turned(const Pixels& stored, int orientation) {
  const bool swaps = orientation >= 5;
  Pixels upright =
      pixels_of(swaps ? stored.height : stored.width, swaps ? stored.width : stored.height, stored.channels);
  kernels::reference::orient(view_of(stored), kernels::orientation_of(orientation), view_of(upright));
  return upright;
}

kernels::StoreSpec store_spec(const Recipe& recipe) {
  kernels::StoreSpec spec{static_cast<kernels::DType>(recipe.dtype),
                          static_cast<kernels::Layout>(recipe.layout),
                          static_cast<kernels::ChannelOrder>(recipe.channels),
                          static_cast<kernels::ValueRange>(recipe.range),
                          {}};
  if (recipe.normalise) spec.normalise = kernels::Normalise{recipe.normalise->mean, recipe.normalise->std};
  if (recipe.patches) {
    spec.patches =
        kernels::Patches{static_cast<int>(recipe.patches->size.width), static_cast<int>(recipe.patches->size.height),
                         static_cast<int>(recipe.patches->merge), static_cast<int>(recipe.patches->temporal)};
  }
  return spec;
}

}  // namespace

Pixels decode_slowly(ImageFormat format, ByteView bytes) {
  if (format == ImageFormat::kJpeg) return decode_jpeg_slowly(bytes);
  if (format == ImageFormat::kPacked) return decode_jpeg_slowly(jpeg_of_mrp(bytes));
  if (format == ImageFormat::kPnm) return decode_pnm_slowly(bytes);
  if (format == ImageFormat::kBmp) return decode_bmp_slowly(bytes);
  if (format == ImageFormat::kL3) return decode_l3_slowly(bytes);
  if (format == ImageFormat::kGif) return decode_gif_slowly(bytes);
  if (format == ImageFormat::kTiff) return decode_tiff_slowly(bytes);
  if (format == ImageFormat::kHeic) {
    const std::vector<std::byte> grey = heic_file("grey");
    return heic_pixels(std::equal(grey.begin(), grey.end(), bytes.begin(), bytes.end()) ? "grey" : "colour");
  }
#ifdef MILLRACE_AVIF_SONAME
  if (format == ImageFormat::kAvif) return decode_avif_slowly(bytes);
#endif
  return format == ImageFormat::kPng ? decode_png_slowly(bytes) : decode_webp_slowly(bytes);
}

std::vector<std::byte> make_slowly(const EncodedImage& image, const SampleGeometry& geometry, const Recipe& recipe) {
  const Pixels upright = turned(decode_slowly(image.info.format, image.bytes.view()), image.info.orientation);
  const Box& crop = geometry.crop;
  const Box& window = geometry.window;
  Pixels resized = pixels_of(geometry.resized.width, geometry.resized.height, upright.channels);
  kernels::ResampleSpec spec{.channels = static_cast<int>(upright.channels),
                             .source = {crop.width, crop.height},
                             .target = view_of(resized).size(),
                             .window = kernels::whole(view_of(resized).size()),
                             .filter = static_cast<kernels::Filter>(recipe.filter)};
  kernels::reference::resample(spec, view_of(upright).crop({crop.left, crop.top, crop.width, crop.height}),
                               view_of(resized));
  std::vector<std::byte> tensor(image_bytes(recipe, geometry.output()).count);
  const kernels::U8View kept =
      kernels::U8View(view_of(resized)).crop({window.left, window.top, window.width, window.height});
  kernels::reference::store(store_spec(recipe), kept, geometry.flip ? kernels::Flip::kHorizontal : kernels::Flip::kNone,
                            tensor);
  return tensor;
}

}  // namespace millrace
