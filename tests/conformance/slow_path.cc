#include "tests/conformance/slow_path.h"

#include <spng.h>
#include <webp/decode.h>

#include <cstdio>  // before jpeglib.h, which needs FILE
#include <memory>
#include <stdexcept>
#include <string>

#include <jpeglib.h>

#include "kernels/cpu/orient.h"
#include "kernels/cpu/resample.h"
#include "kernels/cpu/store.h"
#include "kernels/tensor/reference.h"
#include "tests/support/mrp_file.h"

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

kernels::U8View view_of(const Pixels& pixels) {
  return {pixels.data.data(), static_cast<int>(pixels.width), static_cast<int>(pixels.height),
          static_cast<int>(pixels.channels), static_cast<std::ptrdiff_t>(pixels.width) * pixels.channels};
}

kernels::MutableU8View view_of(Pixels& pixels) {
  return {pixels.data.data(), static_cast<int>(pixels.width), static_cast<int>(pixels.height),
          static_cast<int>(pixels.channels), static_cast<std::ptrdiff_t>(pixels.width) * pixels.channels};
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
