#include "daemon/plan/recipe_check.h"

#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>

#include "daemon/plan/steps_check.h"

namespace millrace {
namespace {

std::string text_of(float value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", static_cast<double>(value));
  return text.data();
}

std::string text_of(Size size) {
  return std::to_string(size.width) + "x" + std::to_string(size.height);
}

Error wrong_field(std::string_view field, const std::string& what) {
  return Error{Code::kInvalid, "recipe." + std::string(field) + ": " + what};
}

Result<void> check_side(std::string_view field, std::int64_t side, std::uint32_t max_side) {
  if (side >= 1 && side <= max_side) return {};
  return wrong_field(
      field, "must be between 1 and " + std::to_string(max_side) + " (limits.side), is " + std::to_string(side));
}

Result<void> check_size(const std::string& field, Size size, std::uint32_t max_side) {
  MILLRACE_TRY_VOID(check_side(field + ".width", size.width, max_side));
  return check_side(field + ".height", size.height, max_side);
}

Result<void> check_count(std::string_view field, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  if (value >= least && value <= most) return {};
  return wrong_field(field, "must be between " + std::to_string(least) + " and " + std::to_string(most) + ", is " +
                                std::to_string(value));
}

// A comparison that NaN fails.
Result<void> check_positive(std::string_view field, float value, float most) {
  if (value > 0 && value <= most) return {};
  const std::string range = std::isfinite(most) ? "more than 0 and at most " + text_of(most) : "more than 0";
  return wrong_field(field, "must be " + range + ", is " + text_of(value));
}

struct CheckCrop {
  std::uint32_t max_side;

  Result<void> operator()(WholeImage) const { return {}; }
  Result<void> operator()(const CentreCrop& crop) const { return check_size("crop.centre", crop.size, max_side); }
  Result<void> operator()(const RandomResizedCrop& crop) const {
    constexpr float kMostRatio = 1e6F;
    MILLRACE_TRY_VOID(check_positive("crop.random_resized.min_scale", crop.min_scale, 1));
    MILLRACE_TRY_VOID(check_positive("crop.random_resized.max_scale", crop.max_scale, 1));
    MILLRACE_TRY_VOID(check_positive("crop.random_resized.min_ratio", crop.min_ratio, kMostRatio));
    MILLRACE_TRY_VOID(check_positive("crop.random_resized.max_ratio", crop.max_ratio, kMostRatio));
    if (crop.min_scale > crop.max_scale)
      return wrong_field("crop.random_resized.min_scale",
                         text_of(crop.min_scale) + " is over max_scale, " + text_of(crop.max_scale));
    if (crop.min_ratio > crop.max_ratio)
      return wrong_field("crop.random_resized.min_ratio",
                         text_of(crop.min_ratio) + " is over max_ratio, " + text_of(crop.max_ratio));
    return {};
  }
  Result<void> operator()(const BoxCrop& crop) const {
    const Box& box = crop.box;
    if (box.left < 0) return wrong_field("crop.box.left", "must be at least 0, is " + std::to_string(box.left));
    if (box.top < 0) return wrong_field("crop.box.top", "must be at least 0, is " + std::to_string(box.top));
    MILLRACE_TRY_VOID(check_side("crop.box.width", box.width, max_side));
    MILLRACE_TRY_VOID(check_side("crop.box.height", box.height, max_side));
    if (std::int64_t{box.left} + box.width > max_side || std::int64_t{box.top} + box.height > max_side)
      return wrong_field(
          "crop.box", "reaches beyond the largest image, " + std::to_string(max_side) + " pixels a side (limits.side)");
    return {};
  }
  Result<void> operator()(const GridCell& cell) const {
    MILLRACE_TRY_VOID(check_count("crop.cell.columns", cell.columns, 1, max_side));
    MILLRACE_TRY_VOID(check_count("crop.cell.rows", cell.rows, 1, max_side));
    MILLRACE_TRY_VOID(check_count("crop.cell.column", cell.column, 0, cell.columns - 1));
    return check_count("crop.cell.row", cell.row, 0, cell.rows - 1);
  }
};

struct CheckResize {
  std::uint32_t max_side;

  Result<void> operator()(KeepSize) const { return {}; }
  Result<void> operator()(const ShorterSide& side) const {
    MILLRACE_TRY_VOID(check_side("resize.shorter_side", side.pixels, max_side));
    if (!side.longest) return {};
    MILLRACE_TRY_VOID(check_side("resize.longest", *side.longest, max_side));
    if (*side.longest > side.pixels) return {};
    return wrong_field("resize.longest", "must be more than resize.shorter_side (" + std::to_string(side.pixels) +
                                             "), is " + std::to_string(*side.longest) +
                                             "; resize.longer_side alone bounds both sides");
  }
  Result<void> operator()(const LongerSide& side) const {
    return check_side("resize.longer_side", side.pixels, max_side);
  }
  Result<void> operator()(const ExactSize& exact) const { return check_size("resize.exact", exact.size, max_side); }
  Result<void> operator()(const SmartResize& smart) const {
    const std::uint64_t most = std::uint64_t{max_side} * max_side;
    MILLRACE_TRY_VOID(check_side("resize.smart.factor", smart.factor, max_side));
    MILLRACE_TRY_VOID(check_count("resize.smart.min_pixels", smart.min_pixels, 1, most));
    return check_count("resize.smart.max_pixels", smart.max_pixels, smart.min_pixels, most);
  }
  Result<void> operator()(const TileGrid& grid) const {
    MILLRACE_TRY_VOID(check_size("resize.tile_grid.tile", grid.tile, max_side));
    MILLRACE_TRY_VOID(check_count("resize.tile_grid.min_tiles", grid.min_tiles, 1, TileGrid::kMostTiles));
    return check_count("resize.tile_grid.max_tiles", grid.max_tiles, grid.min_tiles, TileGrid::kMostTiles);
  }
  Result<void> operator()(const BoundedSides& sides) const {
    MILLRACE_TRY_VOID(check_side("resize.bounded.shortest", sides.shortest, max_side));
    return check_count("resize.bounded.longest", sides.longest, sides.shortest, max_side);
  }
  Result<void> operator()(const ScaleJitter& jitter) const {
    constexpr float kMostScale = 100;
    MILLRACE_TRY_VOID(check_size("resize.scale_jitter.target", jitter.target, max_side));
    MILLRACE_TRY_VOID(check_positive("resize.scale_jitter.scale.low", jitter.scale.low, kMostScale));
    MILLRACE_TRY_VOID(check_positive("resize.scale_jitter.scale.high", jitter.scale.high, kMostScale));
    if (jitter.scale.low <= jitter.scale.high) return {};
    return wrong_field("resize.scale_jitter.scale.low",
                       text_of(jitter.scale.low) + " is over high, " + text_of(jitter.scale.high));
  }
  Result<void> operator()(const RandomShorterSide& sides) const {
    MILLRACE_TRY_VOID(check_count("resize.random_shorter_side.sides", sides.sides.size(), 1, RandomShorterSide::kMost));
    for (const std::uint32_t side : sides.sides) {
      MILLRACE_TRY_VOID(check_side("resize.random_shorter_side.sides", side, max_side));
      if (sides.longest)
        MILLRACE_TRY_VOID(check_count("resize.random_shorter_side.longest", *sides.longest, side, max_side));
    }
    return {};
  }
};

// What the sides of every output are known to be multiples of.
std::optional<Size> known_multiples(const Recipe& recipe) {
  if (const std::optional<Size> fixed = fixed_size(recipe)) return fixed;
  if (const auto* smart = std::get_if<SmartResize>(&recipe.resize)) return Size{smart->factor, smart->factor};
  if (const auto* grid = std::get_if<TileGrid>(&recipe.resize)) return grid->tile;
  return std::nullopt;
}

Result<void> check_patches(const Recipe& recipe, const Patches& patches, std::uint32_t max_side) {
  MILLRACE_TRY_VOID(check_size("patches", patches.size, max_side));
  MILLRACE_TRY_VOID(check_count("patches.merge", patches.merge, 1, Patches::kMostMerge));
  MILLRACE_TRY_VOID(check_count("patches.temporal", patches.temporal, 1, Patches::kMostTemporal));
  if (recipe.layout != Layout::kNchw)
    return wrong_field("layout", "patches hold their channels one after the other: leave NHWC out, or recipe.patches");
  const Size group = patches.group();
  const Size output = known_multiples(recipe).value_or(group);
  const std::string rest = " pixels do not divide into groups of " + text_of(group) +
                           " (patch x merge): choose sizes that are multiples of that";
  if (output.width % group.width != 0) return wrong_field("patches.width", "outputs of " + text_of(output) + rest);
  if (output.height % group.height != 0) return wrong_field("patches.height", "outputs of " + text_of(output) + rest);
  return {};
}

Result<void> check_filters(const Recipe& recipe) {
  if (recipe.random_filters.size() > Recipe::kMostFilters)
    return wrong_field("resize.random_filters", "must be at most " + std::to_string(Recipe::kMostFilters));
  for (const Filter filter : recipe.random_filters)
    if (filter > Filter::kLanczos) return wrong_field("resize.random_filters", "one of them is none");
  if (!recipe.random_filters.empty() && recipe.filter != Filter::kBilinear)
    return wrong_field("resize.filter", "one of random_filters is drawn in its place: leave one of the two out");
  return {};
}

Result<void> check_pad(const Recipe& recipe, std::uint32_t max_side) {
  if (!recipe.pad) return {};
  const Pad& pad = *recipe.pad;
  MILLRACE_TRY_VOID(check_count("pad.left", pad.left, 0, max_side));
  MILLRACE_TRY_VOID(check_count("pad.top", pad.top, 0, max_side));
  MILLRACE_TRY_VOID(check_count("pad.right", pad.right, 0, max_side));
  MILLRACE_TRY_VOID(check_count("pad.bottom", pad.bottom, 0, max_side));
  if (pad.to) MILLRACE_TRY_VOID(check_size("pad.to", *pad.to, max_side));
  if (pad.place > CropPlace::kRandom) return wrong_field("pad.place", "is none");
  if (pad.place != CropPlace::kCentre && !pad.to)
    return wrong_field("pad.place", "says where the image lies in what pad.to adds: set that, or leave the place out");
  if (pad.mode > Pad::Mode::kSymmetric) return wrong_field("pad.mode", "is none");
  return {};
}

Result<void> check_indices(const Recipe& recipe) {
  if (!recipe.indices) return {};
  if (recipe.channels != Channels::kGrey) return wrong_field("indices", "are one channel: ask for channels grey");
  if (recipe.filter != Filter::kNearest || !recipe.random_filters.empty())
    return wrong_field("indices", "have nothing in between: ask for resize.filter nearest");
  return {};
}

Result<void> check_sizes(const Recipe& recipe, std::uint32_t max_side) {
  const std::optional<Size> resized = fixed_padded_size(recipe);
  if (resized && (resized->width > max_side || resized->height > max_side))
    return wrong_field(recipe.pad ? "pad" : "resize", "makes " + text_of(*resized) +
                                                          " pixels of the crop, over the limit of " +
                                                          std::to_string(max_side) + " a side (limits.side)");
  if (recipe.centre_crop) {
    MILLRACE_TRY_VOID(check_size("centre_crop", *recipe.centre_crop, max_side));
    if (resized && (resized->width < recipe.centre_crop->width || resized->height < recipe.centre_crop->height)) {
      return wrong_field("centre_crop", "is larger than the " + std::to_string(resized->width) + "x" +
                                            std::to_string(resized->height) +
                                            " pixels that crop, resize and pad leave");
    }
  }
  if (recipe.crop_place > CropPlace::kRandom) return wrong_field("crop_place", "is none");
  if (recipe.crop_place != CropPlace::kCentre && !recipe.centre_crop)
    return wrong_field("crop_place", "says where centre_crop is cut: give that its size, or leave the place out");
  if (recipe.packing == Packing::kOneSize && !fixed_size(recipe)) {
    return wrong_field(
        "packing",
        "one tensor for all needs a recipe that fixes the size: set resize.exact, centre_crop, pad.to or a "
        "crop of fixed size, "
        "or ask for packed output");
  }
  return {};
}

Result<void> check_values(const Recipe& recipe) {
  if (!(recipe.flip_probability >= 0 && recipe.flip_probability <= 1))
    return wrong_field("flip_probability", "must be between 0 and 1, is " + text_of(recipe.flip_probability));
  if (!recipe.normalise) return {};
  if (recipe.dtype == DType::kUint8)
    return wrong_field("normalise",
                       "makes no sense of uint8 output: ask for float32, float16 or bfloat16, or leave it out");
  for (std::size_t i = 0; i < recipe.normalise->mean.size(); ++i) {
    const std::string at = "[" + std::to_string(i) + "]";
    if (!std::isfinite(recipe.normalise->mean[i])) return wrong_field("normalise.mean" + at, "must be finite");
    if (!std::isfinite(recipe.normalise->std[i]) || recipe.normalise->std[i] == 0)
      return wrong_field("normalise.std" + at, "must be finite and not 0, is " + text_of(recipe.normalise->std[i]));
  }
  return {};
}

// What is each view's own, or not for views at all.
Result<void> check_beside_views(const Recipe& recipe) {
  const Recipe unset;
  const auto own = [](std::string_view field) {
    return wrong_field(field, "is each view's own: say it in recipe.views, or leave the views out");
  };
  if (recipe.crop != unset.crop) return own("crop");
  if (recipe.resize != unset.resize || recipe.filter != unset.filter) return own("resize");
  if (!recipe.random_filters.empty()) return own("resize");
  if (recipe.pad) return own("pad");
  if (recipe.centre_crop) return own("centre_crop");
  if (recipe.crop_place != unset.crop_place) return own("crop_place");
  if (recipe.flip_probability != unset.flip_probability) return own("flip_probability");
  if (!recipe.steps.empty()) return own("steps");
  if (recipe.erasing) return own("erasing");
  if (recipe.packing != unset.packing)
    return wrong_field("packing", "views are of one size each: leave packed output out");
  if (recipe.patches) return wrong_field("patches", "are not made of views: leave one of them out");
  return {};
}

// recipe.views[3].crop for recipe.crop.
Error of_view(std::size_t number, Error error) {
  constexpr std::string_view kPrefix = "recipe.";
  const std::string_view rest =
      std::string_view(error.message).substr(error.message.starts_with(kPrefix) ? kPrefix.size() : 0);
  return {error.code, "recipe.views[" + std::to_string(number) + "]." + std::string(rest)};
}

Result<void> check_view(Recipe view, std::uint32_t max_side) {
  if (!view.views.empty()) return wrong_field("views", "a view has none of its own");
  if (view.packing != Packing::kOneSize)
    return wrong_field("packing", "views are of one size each: leave packed output out");
  view.packing = Packing::kPacked;  // what is said of an open size below a view could not follow
  MILLRACE_TRY_VOID(check_recipe(view, max_side));
  if (fixed_size(view)) return {};
  return wrong_field("resize",
                     "leaves the size open, and each view has one: set resize.exact, centre_crop, pad.to or a crop of "
                     "fixed size");
}

Result<void> check_views(const Recipe& recipe, std::uint32_t max_side) {
  MILLRACE_TRY_VOID(check_beside_views(recipe));
  if (recipe.views.size() > Recipe::kMostViews)
    return wrong_field("views", "must be at most " + std::to_string(Recipe::kMostViews) + " in all, are " +
                                    std::to_string(recipe.views.size()));
  std::size_t steps = 0;
  for (std::size_t i = 0; i < recipe.views.size(); ++i) {
    const Recipe& view = recipe.views[i];
    steps += count_steps(view.steps);
    if (i > 0 && view == recipe.views[i - 1]) continue;
    if (Result<void> sound = check_view(view, max_side); !sound) return of_view(i, std::move(sound).error());
  }
  if (steps <= Recipe::kMostStepsOfViews) return {};
  return wrong_field("views", "must have at most " + std::to_string(Recipe::kMostStepsOfViews) +
                                  " steps in all, have " + std::to_string(steps));
}

}  // namespace

Result<void> check_recipe(const Recipe& recipe, std::uint32_t max_side) {
  MILLRACE_TRY_VOID(check_values(recipe));
  if (!recipe.views.empty()) return check_views(recipe, max_side);
  MILLRACE_TRY_VOID(std::visit(CheckCrop{max_side}, recipe.crop));
  MILLRACE_TRY_VOID(std::visit(CheckResize{max_side}, recipe.resize));
  MILLRACE_TRY_VOID(check_filters(recipe));
  MILLRACE_TRY_VOID(check_pad(recipe, max_side));
  MILLRACE_TRY_VOID(check_indices(recipe));
  if (recipe.patches) MILLRACE_TRY_VOID(check_patches(recipe, *recipe.patches, max_side));
  MILLRACE_TRY_VOID(check_steps(recipe));
  MILLRACE_TRY_VOID(check_erasing(recipe));
  return check_sizes(recipe, max_side);
}

Bytes one_size_tensor_bytes(const Recipe& recipe, std::uint32_t samples) {
  return *fixed_tensor_bytes(recipe, samples);
}

}  // namespace millrace
