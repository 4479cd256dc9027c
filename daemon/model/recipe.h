// What to make of an encoded image and what comes out: proto/rpc/millrace/v1/recipe.proto as checked values. Immutable.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <variant>

#include "proto/base/bytes.h"

namespace millrace {

enum class DType : std::uint8_t { kUint8, kFloat16, kBfloat16, kFloat32 };
enum class Layout : std::uint8_t { kNchw, kNhwc };
enum class Channels : std::uint8_t { kRgb, kBgr, kGrey };
enum class Filter : std::uint8_t { kNearest, kBox, kBilinear, kHamming, kBicubic, kLanczos };
enum class ValueRange : std::uint8_t { kUnit, kRaw };
enum class Packing : std::uint8_t { kOneSize, kPacked };
enum class Fidelity : std::uint8_t { kExact, kFast };
enum class OnError : std::uint8_t { kFail, kSkip, kZero, kSubstitute };
enum class Priority : std::uint8_t { kLow, kNormal, kHigh };
inline constexpr std::size_t kPriorities = 3;

struct Size {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  friend bool operator==(const Size&, const Size&) = default;
};

// Pixels, origin at the top left.
struct Box {
  std::int32_t left = 0;
  std::int32_t top = 0;
  std::int32_t width = 0;
  std::int32_t height = 0;
  friend bool operator==(const Box&, const Box&) = default;
};

struct WholeImage {};
struct CentreCrop {
  Size size;
};
struct RandomResizedCrop {
  float min_scale = 0.08F;
  float max_scale = 1.0F;
  float min_ratio = 3.0F / 4.0F;
  float max_ratio = 4.0F / 3.0F;
};
struct BoxCrop {
  Box box;
};
using Crop = std::variant<WholeImage, CentreCrop, RandomResizedCrop, BoxCrop>;

struct KeepSize {};
struct ShorterSide {
  std::uint32_t pixels;
};
struct LongerSide {
  std::uint32_t pixels;
};
struct ExactSize {
  Size size;
};
using Resize = std::variant<KeepSize, ShorterSide, LongerSide, ExactSize>;

struct Normalise {
  std::array<float, 3> mean{};
  std::array<float, 3> std{1, 1, 1};
};

// Steps in this order: decode, orient, crop, resize, centre crop, flip, normalise, convert.
struct Recipe {
  bool ignore_orientation = false;
  Crop crop = WholeImage{};
  Resize resize = KeepSize{};
  Filter filter = Filter::kBilinear;
  std::optional<Size> centre_crop;
  float flip_probability = 0;
  std::optional<Normalise> normalise;
  ValueRange range = ValueRange::kUnit;
  DType dtype = DType::kUint8;
  Layout layout = Layout::kNchw;
  Channels channels = Channels::kRgb;
  Packing packing = Packing::kOneSize;
};

constexpr Bytes dtype_bytes(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return {1};
    case DType::kFloat16:
    case DType::kBfloat16:
      return {2};
    case DType::kFloat32:
      return {4};
  }
  return {4};
}

constexpr std::uint32_t channel_count(Channels channels) {
  return channels == Channels::kGrey ? 1 : 3;
}

// One image of `size` as the recipe stores it.
constexpr Bytes image_bytes(const Recipe& recipe, Size size) {
  return dtype_bytes(recipe.dtype) * (std::uint64_t{size.width} * size.height * channel_count(recipe.channels));
}

// In a packed tensor every image starts at a multiple of this.
inline constexpr std::uint64_t kPackedAlignment = 64;

}  // namespace millrace
