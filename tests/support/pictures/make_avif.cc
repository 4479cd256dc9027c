// AVIF files by libavif and the encoder that it finds first, in memory.
#include <avif/avif.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "tests/support/pictures/test_images.h"

namespace millrace {
namespace {

using Image = std::unique_ptr<avifImage, void (*)(avifImage*)>;

// Colours as they are, in three planes of their own; so what comes out is what went in.
void fill(avifImage& image, const Pixels& pixels) {
  const unsigned shift = image.depth - 8;
  const auto put = [&](std::uint8_t* plane, std::uint32_t row_bytes, std::uint32_t channel) {
    for (std::uint32_t y = 0; y < pixels.height; ++y) {
      for (std::uint32_t x = 0; x < pixels.width; ++x) {
        const std::uint8_t value = pixels.data[(std::size_t{y} * pixels.width + x) * pixels.channels + channel];
        if (shift == 0) {
          plane[y * row_bytes + x] = value;
        } else {
          reinterpret_cast<std::uint16_t*>(plane + std::size_t{y} * row_bytes)[x] =
              static_cast<std::uint16_t>(value << shift);
        }
      }
    }
  };
  const bool grey = pixels.channels < 3;
  put(image.yuvPlanes[AVIF_CHAN_Y], image.yuvRowBytes[AVIF_CHAN_Y], grey ? 0 : 1);
  if (!grey) put(image.yuvPlanes[AVIF_CHAN_U], image.yuvRowBytes[AVIF_CHAN_U], 2);
  if (!grey) put(image.yuvPlanes[AVIF_CHAN_V], image.yuvRowBytes[AVIF_CHAN_V], 0);
  if (image.alphaPlane != nullptr) put(image.alphaPlane, image.alphaRowBytes, pixels.channels - 1);
}

void set_orientation(avifImage& image, int orientation) {
  constexpr std::uint8_t kAngles[] = {0, 0, 0, 2, 0, 1, 3, 3, 1};
  constexpr int kModes[] = {-1, -1, 1, -1, 0, 0, -1, 0, -1};
  image.transformFlags |= AVIF_TRANSFORM_IROT;
  image.irot.angle = kAngles[orientation];
  if (kModes[orientation] < 0) return;
  image.transformFlags |= AVIF_TRANSFORM_IMIR;
  image.imir.mode = static_cast<std::uint8_t>(kModes[orientation]);
}

}  // namespace

bool can_make_avif() {
  return true;
}

std::vector<std::byte> make_avif(const AvifSpec& spec) {
  const Pixels& pixels = spec.pixels;
  const bool grey = pixels.channels < 3, alpha = pixels.channels % 2 == 0;
  const Image image(avifImageCreate(pixels.width, pixels.height, static_cast<std::uint32_t>(spec.bit_depth),
                                    grey ? AVIF_PIXEL_FORMAT_YUV400 : AVIF_PIXEL_FORMAT_YUV444),
                    avifImageDestroy);
  image->yuvRange = AVIF_RANGE_FULL;
  image->matrixCoefficients = grey ? AVIF_MATRIX_COEFFICIENTS_BT601 : AVIF_MATRIX_COEFFICIENTS_IDENTITY;
  avifImageAllocatePlanes(image.get(), alpha ? AVIF_PLANES_ALL : AVIF_PLANES_YUV);
  fill(*image, pixels);
  if (spec.orientation != 0) set_orientation(*image, spec.orientation);

  const std::unique_ptr<avifEncoder, void (*)(avifEncoder*)> encoder(avifEncoderCreate(), avifEncoderDestroy);
  encoder->speed = AVIF_SPEED_FASTEST;
  encoder->minQuantizer = encoder->maxQuantizer = AVIF_QUANTIZER_LOSSLESS;
  encoder->minQuantizerAlpha = encoder->maxQuantizerAlpha = AVIF_QUANTIZER_LOSSLESS;
  const int frames = spec.animated ? 2 : 1;
  avifResult done = AVIF_RESULT_OK;
  for (int i = 0; i < frames && done == AVIF_RESULT_OK; ++i)
    done = avifEncoderAddImage(encoder.get(), image.get(), 1,
                               frames == 1 ? AVIF_ADD_IMAGE_FLAG_SINGLE : AVIF_ADD_IMAGE_FLAG_NONE);
  avifRWData file = AVIF_DATA_EMPTY;
  if (done == AVIF_RESULT_OK) done = avifEncoderFinish(encoder.get(), &file);
  if (done != AVIF_RESULT_OK) throw std::runtime_error(std::string("test image: AVIF: ") + avifResultToString(done));
  const auto* const begin = reinterpret_cast<const std::byte*>(file.data);
  std::vector<std::byte> bytes(begin, begin + file.size);
  avifRWDataFree(&file);
  return bytes;
}

}  // namespace millrace
