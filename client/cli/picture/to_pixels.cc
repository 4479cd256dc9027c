#include "client/cli/picture/to_pixels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace millrace::cli {
namespace {

template <class T>
T load(std::span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof value);
  return value;
}

float element(DType dtype, std::span<const std::byte> bytes, std::size_t index) {
  switch (dtype) {
    case DType::kUint8:
      return load<std::uint8_t>(bytes, index);
    case DType::kFloat16:
      return from_float16(load<std::uint16_t>(bytes, index));
    case DType::kBfloat16:
      return from_bfloat16(load<std::uint16_t>(bytes, index));
    case DType::kFloat32:
      return load<float>(bytes, index);
  }
  return 0;
}

// `channel` counts R, G, B.
std::uint8_t pixel_value(const Recipe& recipe, float value, std::size_t channel) {
  if (recipe.normalise) {
    value = (value * recipe.normalise->std[channel] + recipe.normalise->mean[channel]) * 255;
  } else if (recipe.dtype != DType::kUint8 && recipe.range == ValueRange::kUnit) {
    value *= 255;
  }
  return static_cast<std::uint8_t>(std::clamp(std::isnan(value) ? 0.0F : std::round(value), 0.0F, 255.0F));
}

}  // namespace

float from_float16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  float value = 0;
  if (exponent == 0) {
    value = std::ldexp(static_cast<float>(fraction), -24);
  } else if (exponent == 31) {
    value = fraction == 0 ? INFINITY : NAN;
  } else {
    value = std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

Picture to_picture(const Recipe& recipe, Size size, std::span<const std::byte> bytes) {
  Picture picture{static_cast<int>(size.width), static_cast<int>(size.height), {}};
  const std::size_t count = std::size_t{size.width} * size.height;
  picture.pixels.resize(count);
  const std::size_t channels = recipe.channels == Channels::kGrey ? 1 : 3;
  for (std::size_t i = 0; i < count; ++i) {
    std::array<std::uint8_t, 3> rgb{};
    for (std::size_t stored = 0; stored < channels; ++stored) {
      const std::size_t channel = recipe.channels == Channels::kBgr ? 2 - stored : stored;
      const std::size_t index = recipe.layout == Layout::kNchw ? stored * count + i : i * channels + stored;
      rgb[channel] = pixel_value(recipe, element(recipe.dtype, bytes, index), channel);
    }
    picture.pixels[i] = channels == 1 ? Colour{rgb[0], rgb[0], rgb[0]} : Colour{rgb[0], rgb[1], rgb[2]};
  }
  return picture;
}

}  // namespace millrace::cli
