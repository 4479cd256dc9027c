// What to make of an encoded image and what comes out. Plain values for designated initialisers, and presets for the
// usual ones.
//
//   Recipe::train(224)                              RandomResizedCrop 224, flip 0.5, uint8 N x 3 x 224 x 224
//   Recipe::evaluate(256, 224)                      shorter side 256, centre crop 224
//   Recipe::train(224).normalised(DType::kFloat16)  the same, with ImageNet's mean and deviation taken out
//   Recipe{.resize = ExactSize{{.width = 640, .height = 480}}, .filter = Filter::kBicubic, .layout = Layout::kNhwc}
//
// Steps in this order: decode, orient, crop, resize, centre crop, flip, normalise, convert. Immutable values; the
// daemon checks them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "millrace/export.h"
#include "millrace/result.h"

namespace millrace {
inline namespace client {

enum class DType : std::uint8_t { kUint8, kFloat16, kBfloat16, kFloat32 };
enum class Layout : std::uint8_t { kNchw, kNhwc };
enum class Channels : std::uint8_t { kRgb, kBgr, kGrey };
enum class Filter : std::uint8_t { kNearest, kBox, kBilinear, kHamming, kBicubic, kLanczos };
enum class ValueRange : std::uint8_t { kUnit, kRaw };     // of floats that are not normalised: [0, 1] or [0, 255]
enum class Packing : std::uint8_t { kOneSize, kPacked };  // one tensor N x ..., or each image in its own size
enum class CentreRounding : std::uint8_t { kHalfToEven, kDown };  // as torchvision, or as transformers
enum class Fidelity : std::uint8_t { kExact, kFast };  // bit-equal to Pillow, or near it: recipe.proto says how near
enum class OnError : std::uint8_t { kFail, kSkip, kZero, kSubstitute };
enum class Priority : std::uint8_t { kLow, kNormal, kHigh };

// Pixels; both sides at least 1.
struct Size {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  friend bool operator==(const Size&, const Size&) = default;
};

// Pixels of the oriented image, origin at the top left.
struct Box {
  std::int32_t left = 0;
  std::int32_t top = 0;
  std::int32_t width = 0;
  std::int32_t height = 0;
  friend bool operator==(const Box&, const Box&) = default;
};

// What to cut out before resizing.
struct WholeImage {};
struct CentreCrop {
  Size size{};
};
struct RandomResizedCrop {  // as torchvision's
  float min_scale = 0.08F;
  float max_scale = 1.0F;
  float min_ratio = 3.0F / 4.0F;
  float max_ratio = 4.0F / 3.0F;
};
struct BoxCrop {
  Box box{};
};
struct GridCell {  // one of columns x rows parts of the image, numbered from 0
  std::uint32_t columns = 1;
  std::uint32_t rows = 1;
  std::uint32_t column = 0;
  std::uint32_t row = 0;
};
using Crop = std::variant<WholeImage, CentreCrop, RandomResizedCrop, BoxCrop, GridCell>;

// What size to make of the crop.
struct KeepSize {};
struct ShorterSide {
  std::uint32_t pixels = 0;
};
struct LongerSide {
  std::uint32_t pixels = 0;
};
struct ExactSize {
  Size size{};
};
struct SmartResize {  // multiples of `factor`, min_pixels to max_pixels in all: Qwen2-VL's smart_resize
  std::uint32_t factor = 28;
  std::uint64_t min_pixels = 56 * 56;
  std::uint64_t max_pixels = 28 * 28 * 1280;
};
struct TileGrid {  // so many tiles, in the grid nearest to the image's ratio: InternVL's tiling
  Size tile{448, 448};
  std::uint32_t min_tiles = 1;
  std::uint32_t max_tiles = 12;
};
struct BoundedSides {  // longer side at most, then each side at least: Idefics2's resize
  std::uint32_t shortest = 378;
  std::uint32_t longest = 980;
};
using Resize = std::variant<KeepSize, ShorterSide, LongerSide, ExactSize, SmartResize, TileGrid, BoundedSides>;

// out = (in - mean) / std, in the unit range, by channel in the order R, G, B. The defaults are ImageNet's.
struct Normalise {
  std::array<float, 3> mean{0.485F, 0.456F, 0.406F};
  std::array<float, 3> std{0.229F, 0.224F, 0.225F};
};

// The image stored patch by patch, in groups of merge x merge, each patch channels x temporal x height x width, all
// frames alike: what a vision transformer takes. The tensor's shape is {patches of all images, channels, temporal,
// height, width}. Sides that are no multiples of patch x merge are refused.
struct Patches {
  Size size{};
  std::uint32_t merge = 1;     // at most 64
  std::uint32_t temporal = 1;  // at most 16
};

struct Recipe {
  bool ignore_orientation = false;  // true: the stored pixels, whatever EXIF says
  Crop crop = WholeImage{};
  Resize resize = KeepSize{};
  Filter filter = Filter::kBilinear;
  std::optional<Size> centre_crop{};  // from the middle, after the resize
  float flip_probability = 0;
  std::optional<Normalise> normalise{};  // not with kUint8
  ValueRange range = ValueRange::kUnit;
  DType dtype = DType::kUint8;
  Layout layout = Layout::kNchw;
  Channels channels = Channels::kRgb;
  Packing packing = Packing::kOneSize;
  std::optional<Patches> patches{};  // instead of `layout`, which must be kNchw
  CentreRounding centre_rounding = CentreRounding::kHalfToEven;

  static Recipe train(std::uint32_t side) {
    return {.crop = RandomResizedCrop{}, .resize = ExactSize{{side, side}}, .flip_probability = 0.5F};
  }
  static Recipe evaluate(std::uint32_t shorter_side, std::uint32_t crop_side) {
    return {.resize = ShorterSide{shorter_side}, .centre_crop = Size{crop_side, crop_side}};
  }
  // Each whole image with its longer side made so many pixels, packed, pixels interleaved.
  static Recipe thumbnail(std::uint32_t longer_side) {
    return {.resize = LongerSide{longer_side}, .layout = Layout::kNhwc, .packing = Packing::kPacked};
  }
  // This recipe with the output in `type`; floats are normalised, uint8 is not.
  Recipe normalised(DType type, const Normalise& by = {}) const {
    Recipe recipe = *this;
    recipe.dtype = type;
    recipe.normalise = type == DType::kUint8 ? std::nullopt : std::optional(by);
    return recipe;
  }
};

MILLRACE_API Bytes dtype_bytes(DType dtype);
MILLRACE_API std::string_view dtype_name(DType dtype);  // "uint8", "float16", "bfloat16", "float32"

// The one size of every image that the recipe makes; nullopt where it depends on the image.
MILLRACE_API std::optional<Size> fixed_size(const Recipe& recipe);

// Room for `samples` images and their records in one slot; nullopt where it depends on the images.
MILLRACE_API std::optional<Bytes> slot_bytes_for(const Recipe& recipe, std::uint32_t samples);

}  // namespace client
}  // namespace millrace
