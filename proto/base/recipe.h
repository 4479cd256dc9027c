// What to make of an encoded image and what comes out: the one definition, for library and daemon alike. Plain values
// for designated initialisers, and presets for the usual ones.
//
//   Recipe::train(224)                              RandomResizedCrop 224, flip 0.5, uint8 N x 3 x 224 x 224
//   Recipe::evaluate(256, 224)                      shorter side 256, centre crop 224
//   Recipe::train(224).normalised(DType::kFloat16)  the same, with ImageNet's mean and deviation taken out
//   Recipe{.resize = ExactSize{{.width = 640, .height = 480}}, .filter = Filter::kBicubic, .layout = Layout::kNhwc}
//
// In this order: decode, orient, crop, resize, pad, centre crop, flip, steps of augmentation (steps.h), normalise, convert,
// erase. proto/rpc's recipe.proto says the rounding of each. Immutable values. Any bits may stand in them: whether they make sense the daemon says
// (daemon/plan/recipe_check.h), and nobody else.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "proto/base/bytes.h"
#include "proto/base/steps.h"

namespace millrace {

enum class DType : std::uint8_t { kUint8, kFloat16, kBfloat16, kFloat32 };
enum class Layout : std::uint8_t { kNchw, kNhwc };
enum class Channels : std::uint8_t { kRgb, kBgr, kGrey };
enum class Filter : std::uint8_t { kNearest, kBox, kBilinear, kHamming, kBicubic, kLanczos };
enum class ValueRange : std::uint8_t { kUnit, kRaw };     // of floats that are not normalised: [0, 1] or [0, 255]
enum class Packing : std::uint8_t { kOneSize, kPacked };  // one tensor N x ..., or each image in its own size
enum class CentreRounding : std::uint8_t { kHalfToEven, kDown };  // as torchvision, or as transformers
enum class CropPlace : std::uint8_t { kCentre, kTopLeft, kTopRight, kBottomLeft, kBottomRight, kRandom };

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
struct WholeImage {
  friend bool operator==(const WholeImage&, const WholeImage&) = default;
};
struct CentreCrop {
  Size size{};
  friend bool operator==(const CentreCrop&, const CentreCrop&) = default;
};
struct RandomResizedCrop {  // as torchvision's
  float min_scale = 0.08F;
  float max_scale = 1.0F;
  float min_ratio = 3.0F / 4.0F;
  float max_ratio = 4.0F / 3.0F;
  friend bool operator==(const RandomResizedCrop&, const RandomResizedCrop&) = default;
};
struct BoxCrop {
  Box box{};
  friend bool operator==(const BoxCrop&, const BoxCrop&) = default;
};
struct GridCell {  // one of columns x rows parts of the image, numbered from 0
  std::uint32_t columns = 1;
  std::uint32_t rows = 1;
  std::uint32_t column = 0;
  std::uint32_t row = 0;
  friend bool operator==(const GridCell&, const GridCell&) = default;
};
using Crop = std::variant<WholeImage, CentreCrop, RandomResizedCrop, BoxCrop, GridCell>;

// What size to make of the crop.
struct KeepSize {
  friend bool operator==(const KeepSize&, const KeepSize&) = default;
};
struct ShorterSide {
  std::uint32_t pixels = 0;
  std::optional<std::uint32_t> longest{};  // of the longer side, over `pixels`; the shorter one shrinks with it
  friend bool operator==(const ShorterSide&, const ShorterSide&) = default;
};
struct LongerSide {
  std::uint32_t pixels = 0;
  friend bool operator==(const LongerSide&, const LongerSide&) = default;
};
struct ExactSize {
  Size size{};
  friend bool operator==(const ExactSize&, const ExactSize&) = default;
};
struct SmartResize {  // multiples of `factor`, min_pixels to max_pixels in all: Qwen2-VL's smart_resize
  std::uint32_t factor = 28;
  std::uint64_t min_pixels = 56 * 56;
  std::uint64_t max_pixels = 28 * 28 * 1280;
  friend bool operator==(const SmartResize&, const SmartResize&) = default;
};
struct TileGrid {  // so many tiles, in the grid nearest to the image's ratio: InternVL's tiling
  static constexpr std::uint32_t kMostTiles = 256;  // choosing among their grids takes microseconds an image
  Size tile{448, 448};
  std::uint32_t min_tiles = 1;
  std::uint32_t max_tiles = 12;
  friend bool operator==(const TileGrid&, const TileGrid&) = default;
};
struct BoundedSides {  // longer side at most, then each side at least: Idefics2's resize
  std::uint32_t shortest = 378;
  std::uint32_t longest = 980;
  friend bool operator==(const BoundedSides&, const BoundedSides&) = default;
};
struct ScaleJitter {  // `target`, as far as the ratio allows, times a factor that is drawn: torchvision's
  Size target{};
  Interval scale{0.1F, 2};
  friend bool operator==(const ScaleJitter&, const ScaleJitter&) = default;
};
struct RandomShorterSide {  // one of these as ShorterSide, drawn: torchvision's RandomShortestSize
  static constexpr std::size_t kMost = 64;
  std::vector<std::uint32_t> sides{};
  std::optional<std::uint32_t> longest{};
  friend bool operator==(const RandomShorterSide&, const RandomShorterSide&) = default;
};
using Resize = std::variant<KeepSize, ShorterSide, LongerSide, ExactSize, SmartResize, TileGrid, BoundedSides,
                            ScaleJitter, RandomShorterSide>;

// Pixels added around what the resize has made.
struct Pad {
  enum class Mode : std::uint8_t { kConstant, kEdge, kReflect, kSymmetric };
  std::uint32_t left = 0, top = 0, right = 0, bottom = 0;
  std::optional<Size> to{};              // then so many more that the image is at least so large
  CropPlace place = CropPlace::kCentre;  // where the image lies in these
  Mode mode = Mode::kConstant;
  Fill fill{};
  friend bool operator==(const Pad&, const Pad&) = default;
};

// out = (in - mean) / std, in the unit range, by channel in the order R, G, B. The defaults are ImageNet's.
struct Normalise {
  std::array<float, 3> mean{0.485F, 0.456F, 0.406F};
  std::array<float, 3> std{0.229F, 0.224F, 0.225F};
  friend bool operator==(const Normalise&, const Normalise&) = default;
};

// The image stored patch by patch, in groups of merge x merge, each patch channels x temporal x height x width, all
// frames alike: what a vision transformer takes. The tensor's shape is {patches of all images, channels, temporal,
// height, width}. Sides that are no multiples of patch x merge are refused.
struct Patches {
  static constexpr std::uint32_t kMostMerge = 64;
  static constexpr std::uint32_t kMostTemporal = 16;
  Size size{};
  std::uint32_t merge = 1;     // at most kMostMerge
  std::uint32_t temporal = 1;  // at most kMostTemporal
  friend bool operator==(const Patches&, const Patches&) = default;

  // What an image's sides must be multiples of.
  constexpr Size group() const { return {size.width * merge, size.height * merge}; }
};

struct Recipe {
  bool ignore_orientation = false;  // true: the stored pixels, whatever EXIF says
  Crop crop = WholeImage{};
  Resize resize = KeepSize{};
  Filter filter = Filter::kBilinear;
  std::optional<Size> centre_crop{};  // after the resize, where crop_place says
  float flip_probability = 0;
  std::optional<Normalise> normalise{};  // not with kUint8
  ValueRange range = ValueRange::kUnit;
  DType dtype = DType::kUint8;
  Layout layout = Layout::kNchw;
  Channels channels = Channels::kRgb;
  Packing packing = Packing::kOneSize;
  std::optional<Patches> patches{};  // instead of `layout`, which must be kNchw
  CentreRounding centre_rounding = CentreRounding::kHalfToEven;
  std::vector<Step> steps{};         // of augmentation, in their order
  std::optional<Erasing> erasing{};  // not with patches
  CropPlace crop_place = CropPlace::kCentre;
  std::optional<Pad> pad{};              // after the resize, before centre_crop
  std::vector<Filter> random_filters{};  // one of these, drawn, instead of `filter`
  static constexpr std::size_t kMostFilters = 8;
  bool indices = false;  // of a palette, not their colours: masks. Needs kGrey and kNearest
  // Several images of one fetch and one decode: a recipe each, of which crop, resize, filters, pad, centre_crop,
  // crop_place, flip_probability, steps and erasing count, and which this one must leave as they are. All else is this one's, and
  // the same in each (of_views()). Every one fixes its size; none is packed, has patches or views.
  std::vector<Recipe> views{};
  static constexpr std::uint32_t kMostViews = 64;
  static constexpr std::uint32_t kMostStepsOfViews = 256;
  friend bool operator==(const Recipe&, const Recipe&) = default;

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
  // The images that these make of one sample: two views of SimCLR, multi-crop. What concerns all is the first one's.
  static Recipe of_views(std::vector<Recipe> views);
  // This recipe with the output in `type`; floats are normalised, uint8 is not.
  Recipe normalised(DType type, const Normalise& by = {}) const {
    Recipe recipe = *this;
    recipe.dtype = type;
    recipe.normalise = type == DType::kUint8 ? std::nullopt : std::optional(by);
    for (Recipe& view : recipe.views) view = view.normalised(type, by);
    return recipe;
  }
};

std::string_view dtype_name(DType dtype);  // "uint8", "float16", "bfloat16", "float32"

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

// What it makes of a sample, one after the other: its views, or itself.
inline std::span<const Recipe> views_of(const Recipe& recipe) {
  return recipe.views.empty() ? std::span(&recipe, 1) : std::span(recipe.views);
}

// Whether anything is drawn for a sample beside its crop and flip. Of views it is each one's own matter.
inline bool is_augmented(const Recipe& recipe) {
  return !recipe.steps.empty() || recipe.erasing.has_value();
}

// One image of `size` as the recipe stores it.
constexpr Bytes image_bytes(const Recipe& recipe, Size size) {
  const std::uint64_t frames = recipe.patches ? recipe.patches->temporal : 1;
  return dtype_bytes(recipe.dtype) *
         (std::uint64_t{size.width} * size.height * channel_count(recipe.channels) * frames);
}

// In a packed tensor every image starts at a multiple of this, and so does each view's tensor; patches follow each other
// without gaps.
inline constexpr std::uint64_t kPackedAlignment = 64;
constexpr std::uint64_t packed_alignment(const Recipe& recipe) {
  return recipe.patches ? 1 : kPackedAlignment;
}

// The one size of every image that the recipe makes, where the recipe alone decides it: an exact resize, a centre crop,
// or a crop of fixed size, whatever resize follows. nullopt where it depends on the image. A sample that brings its own
// box or size may come out otherwise; that is then the sample's error.
std::optional<Size> fixed_size(const Recipe& recipe);

// The same before the centre crop, with and without what is padded.
std::optional<Size> fixed_padded_size(const Recipe& recipe);
std::optional<Size> fixed_resized_size(const Recipe& recipe);

// What a slot has of `samples` images before their records: one tensor, or each view's, each filled up to a multiple of 64
// bytes. nullopt: it depends on the images.
std::optional<Bytes> fixed_tensor_bytes(const Recipe& recipe, std::uint32_t samples);

}  // namespace millrace
