#include "daemon/backend/cpu/decoders/tiff/tiff_pixels.h"

#include <algorithm>
#include <cstddef>

#include "kernels/cpu/convert.h"

namespace millrace {
namespace {

std::uint8_t byte_of(std::uint8_t sample) {
  return sample;
}
std::uint8_t byte_of(std::uint16_t sample) {
  return static_cast<std::uint8_t>(sample >> 8U);
}

std::uint8_t grey_of(std::uint8_t sample) {
  return sample;
}
std::uint8_t grey_of(std::uint16_t sample) {
  return static_cast<std::uint8_t>(std::min<std::uint16_t>(sample, 255));
}

std::uint8_t divided(unsigned value, unsigned alpha) {
  return alpha == 0 ? 0 : static_cast<std::uint8_t>(std::min(255U, value * 255 / alpha));
}

}  // namespace

void TiffPixels::convert(const std::uint8_t* row, int first, int count, std::uint8_t* out) const {
  if (bits < 8) return convert_small(row, first, count, out);
  const std::ptrdiff_t at = std::ptrdiff_t{first} * samples;
  if (kind == Kind::kCmyk && bits == 8 && samples == 4)
    return kernels::cmyk_to_rgb(row + at, count, kernels::CmykInk::kNormal, out);
  if (bits == 8) return convert_whole(row + at, count, out);
  convert_whole(reinterpret_cast<const std::uint16_t*>(row) + at, count, out);
}

void TiffPixels::convert_plane(const std::uint8_t* row, int first, int count, int channel, std::uint8_t* out) const {
  for (int x = 0; x < count; ++x) {
    const int at = first + x;
    out[3 * x + channel] = bits == 8 ? row[at] : byte_of(reinterpret_cast<const std::uint16_t*>(row)[at]);
  }
}

// One sample a pixel, the first in a byte's upper bits. White is 255, however few bits it has.
void TiffPixels::convert_small(const std::uint8_t* row, int first, int count, std::uint8_t* out) const {
  const int most = (1 << bits) - 1;
  for (int x = 0; x < count; ++x) {
    const int bit = (first + x) * bits;
    const int value = row[bit / 8] >> (8 - bits - bit % 8) & most;
    if (kind == Kind::kPalette) {
      std::copy_n(palette.data() + 3 * value, 3, out + 3 * x);
    } else if (kind == Kind::kIndex) {
      out[x] = static_cast<std::uint8_t>(value);
    } else {
      out[x] = static_cast<std::uint8_t>((kind == Kind::kGreyInverted ? most - value : value) * 255 / most);
    }
  }
}

template <class Sample>
void TiffPixels::convert_whole(const Sample* pixel, int count, std::uint8_t* out) const {
  for (int x = 0; x < count; ++x, pixel += samples) {
    switch (kind) {
      case Kind::kGrey:
        out[x] = grey_of(pixel[0]);
        break;
      case Kind::kGreyInverted:
        out[x] = static_cast<std::uint8_t>(255 - grey_of(pixel[0]));
        break;
      case Kind::kPalette:
        std::copy_n(palette.data() + 3 * byte_of(pixel[0]), 3, out + 3 * x);
        break;
      case Kind::kIndex:
        out[x] = byte_of(pixel[0]);
        break;
      case Kind::kRgb:
        for (int c = 0; c < 3; ++c) out[3 * x + c] = byte_of(pixel[c]);
        break;
      case Kind::kRgbPremultiplied:
        for (int c = 0; c < 3; ++c) out[3 * x + c] = divided(byte_of(pixel[c]), byte_of(pixel[3]));
        break;
      case Kind::kCmyk: {
        const std::uint8_t inks[] = {byte_of(pixel[0]), byte_of(pixel[1]), byte_of(pixel[2]), byte_of(pixel[3])};
        kernels::cmyk_to_rgb(inks, 1, kernels::CmykInk::kNormal, out + 3 * x);
        break;
      }
    }
  }
}

}  // namespace millrace
