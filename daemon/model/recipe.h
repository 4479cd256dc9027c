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
enum class CentreRounding : std::uint8_t { kHalfToEven, kDown };
enum class Fidelity : std::uint8_t { kExact, kFast };
enum class OnError : std::uint8_t { kFail, kSkip, kZero, kSubstitute };
enum class Guard : std::uint8_t { kOff, kOn };  // on: nobody chose the OnError; see pipeline/bad_sample_guard.h
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
struct GridCell {
  std::uint32_t columns = 1;
  std::uint32_t rows = 1;
  std::uint32_t column = 0;
  std::uint32_t row = 0;
};
using Crop = std::variant<WholeImage, CentreCrop, RandomResizedCrop, BoxCrop, GridCell>;

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
struct SmartResize {
  std::uint32_t factor = 1;
  std::uint64_t min_pixels = 1;
  std::uint64_t max_pixels = 1;
};
struct TileGrid {
  static constexpr std::uint32_t kMostTiles = 256;  // choosing among their grids takes microseconds an image
  Size tile;
  std::uint32_t min_tiles = 1;
  std::uint32_t max_tiles = 1;
};
struct BoundedSides {
  std::uint32_t shortest = 1;
  std::uint32_t longest = 1;
};
using Resize = std::variant<KeepSize, ShorterSide, LongerSide, ExactSize, SmartResize, TileGrid, BoundedSides>;

struct Normalise {
  std::array<float, 3> mean{};
  std::array<float, 3> std{1, 1, 1};
};

// The image stored patch by patch, in groups of merge x merge: proto/rpc/millrace/v1/recipe.proto draws the order.
struct Patches {
  static constexpr std::uint32_t kMostMerge = 64;
  static constexpr std::uint32_t kMostTemporal = 16;
  Size size;
  std::uint32_t merge = 1;
  std::uint32_t temporal = 1;

  // What an image's sides must be multiples of.
  constexpr Size group() const { return {size.width * merge, size.height * merge}; }
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
  std::optional<Patches> patches;
  CentreRounding centre_rounding = CentreRounding::kHalfToEven;
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
  const std::uint64_t frames = recipe.patches ? recipe.patches->temporal : 1;
  return dtype_bytes(recipe.dtype) *
         (std::uint64_t{size.width} * size.height * channel_count(recipe.channels) * frames);
}

// In a packed tensor every image starts at a multiple of this; patches follow each other without gaps.
inline constexpr std::uint64_t kPackedAlignment = 64;
constexpr std::uint64_t packed_alignment(const Recipe& recipe) {
  return recipe.patches ? 1 : kPackedAlignment;
}

}  // namespace millrace
