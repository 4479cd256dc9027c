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

void rgba_to_rgb(const std::uint8_t* rgba, int count, std::uint8_t* rgb) {
  for (int i = 0; i < count; ++i, rgba += 4, rgb += 3) {
    const std::uint8_t red = rgba[0], green = rgba[1], blue = rgba[2];
    rgb[0] = red;
    rgb[1] = green;
    rgb[2] = blue;
  }
}

void grey_alpha_to_grey(const std::uint8_t* grey_alpha, int count, std::uint8_t* grey) {
  for (int i = 0; i < count; ++i) grey[i] = grey_alpha[2 * static_cast<std::ptrdiff_t>(i)];
}

// From the right, so that it works in place.
void grey_to_rgb(const std::uint8_t* grey, int count, std::uint8_t* rgb) {
  for (std::ptrdiff_t i = count - 1; i >= 0; --i) {
    const std::uint8_t value = grey[i];
    rgb[3 * i] = rgb[3 * i + 1] = rgb[3 * i + 2] = value;
  }
}

void rgb_to_grey(const std::uint8_t* rgb, int count, std::uint8_t* grey) {
  for (int i = 0; i < count; ++i, rgb += 3) grey[i] = luma(rgb[0], rgb[1], rgb[2]);
}

void high_bytes(const std::uint16_t* samples, int count, std::uint8_t* out) {
  for (int i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>(samples[i] >> 8);
}

void clipped_to_bytes(const std::uint16_t* samples, int count, std::uint8_t* out) {
  for (int i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>(std::min<unsigned>(samples[i], 255));
}

}  // namespace millrace::kernels
