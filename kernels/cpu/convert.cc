#include "kernels/cpu/convert.h"

#include <algorithm>

#include "kernels/tensor/store_spec.h"

namespace millrace::kernels {
namespace {

// a * b / 255, rounded to nearest, for bytes.
std::uint8_t scaled(unsigned a, unsigned b) {
  const unsigned product = a * b + 128;
  return static_cast<std::uint8_t>(((product >> 8) + product) >> 8);
}

}  // namespace

void cmyk_to_rgb(const std::uint8_t* cmyk, int count, CmykInk ink, std::uint8_t* rgb) {
  const unsigned flip = ink == CmykInk::kNormal ? 255 : 0;  // from ink to light
  for (int i = 0; i < count; ++i, cmyk += 4, rgb += 3) {
    const unsigned cyan = cmyk[0], magenta = cmyk[1], yellow = cmyk[2], light = cmyk[3] ^ flip;
    rgb[0] = scaled(cyan ^ flip, light);
    rgb[1] = scaled(magenta ^ flip, light);
    rgb[2] = scaled(yellow ^ flip, light);
  }
}

void rgb_to_grey(const std::uint8_t* rgb, int count, std::uint8_t* grey) {
  for (int i = 0; i < count; ++i, rgb += 3) grey[i] = luma(rgb[0], rgb[1], rgb[2]);
}

void clipped_to_bytes(const std::uint16_t* samples, int count, std::uint8_t* out) {
  for (int i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>(std::min<unsigned>(samples[i], 255));
}

}  // namespace millrace::kernels
