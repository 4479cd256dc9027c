// Every message in this file is untrusted.
#include "daemon/serve/parse_recipe.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "daemon/serve/field.h"

namespace millrace {
namespace {

// The largest side that any check of a sample lets through; keeps sums of sides within 32 bits.
constexpr std::uint32_t kMaxSide = 1U << 24U;

std::string to_text(float value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", static_cast<double>(value));
  return text.data();
}

Result<void> check_finite(std::string_view field, float value) {
  if (!std::isfinite(value)) return field_error(field, "must be a finite number, is " + to_text(value));
  return {};
}

// `value`, or `otherwise` when it is 0: positive and finite.
Result<float> parse_positive(std::string_view field, float value, float otherwise) {
  MILLRACE_TRY_VOID(check_finite(field, value));
  if (value == 0) return otherwise;
  if (value < 0) return field_error(field, "must be more than 0, is " + to_text(value));
  return value;
}

Result<RandomResizedCrop> parse_random_resized(const v1::RandomResizedCrop& crop) {
  if (has_unknown_fields(crop)) return unknown_field(crop);
  const RandomResizedCrop defaults;
  RandomResizedCrop parsed;
  MILLRACE_TRY(parsed.min_scale, parse_positive("min_scale", crop.min_scale(), defaults.min_scale));
  MILLRACE_TRY(parsed.max_scale, parse_positive("max_scale", crop.max_scale(), defaults.max_scale));
  MILLRACE_TRY(parsed.min_ratio, parse_positive("min_ratio", crop.min_ratio(), defaults.min_ratio));
  MILLRACE_TRY(parsed.max_ratio, parse_positive("max_ratio", crop.max_ratio(), defaults.max_ratio));
  if (parsed.max_scale > 1) return field_error("max_scale", "must be at most 1, is " + to_text(parsed.max_scale));
  if (parsed.min_scale > parsed.max_scale) {
    return field_error(
        "min_scale", "must not be over max_scale (" + to_text(parsed.max_scale) + "), is " + to_text(parsed.min_scale));
  }
  if (parsed.min_ratio > parsed.max_ratio) {
    return field_error(
        "min_ratio", "must not be over max_ratio (" + to_text(parsed.max_ratio) + "), is " + to_text(parsed.min_ratio));
  }
  return parsed;
}

Result<GridCell> parse_cell(const v1::GridCell& cell) {
  if (has_unknown_fields(cell)) return unknown_field(cell);
  MILLRACE_TRY_VOID(check_range("columns", cell.columns(), 1U, kMaxSide));
  MILLRACE_TRY_VOID(check_range("rows", cell.rows(), 1U, kMaxSide));
  MILLRACE_TRY_VOID(check_range("column", cell.column(), 0U, cell.columns() - 1));
  MILLRACE_TRY_VOID(check_range("row", cell.row(), 0U, cell.rows() - 1));
  return GridCell{cell.columns(), cell.rows(), cell.column(), cell.row()};
}

Result<Crop> parse_crop(const v1::Crop& crop) {
  if (has_unknown_fields(crop)) return unknown_field(crop);
  switch (crop.kind_case()) {
    case v1::Crop::kCentre: {
      MILLRACE_TRY_IN("centre", const Size size, parse_size(crop.centre()));
      return Crop{CentreCrop{size}};
    }
    case v1::Crop::kRandomResized: {
      MILLRACE_TRY_IN("random_resized", const RandomResizedCrop parsed, parse_random_resized(crop.random_resized()));
      return Crop{parsed};
    }
    case v1::Crop::kBox: {
      MILLRACE_TRY_IN("box", const Box box, parse_box(crop.box()));
      return Crop{BoxCrop{box}};
    }
    case v1::Crop::kCell: {
      MILLRACE_TRY_IN("cell", const GridCell cell, parse_cell(crop.cell()));
      return Crop{cell};
    }
    case v1::Crop::KIND_NOT_SET:
      break;
  }
  return Crop{WholeImage{}};
}

Result<SmartResize> parse_smart(const v1::SmartResize& smart) {
  if (has_unknown_fields(smart)) return unknown_field(smart);
  constexpr std::uint64_t kMostPixels = std::uint64_t{kMaxSide} * kMaxSide;
  MILLRACE_TRY_VOID(check_range("factor", smart.factor(), 1U, kMaxSide));
  MILLRACE_TRY_VOID(check_range<std::uint64_t>("min_pixels", smart.min_pixels(), 1, kMostPixels));
  MILLRACE_TRY_VOID(check_range<std::uint64_t>("max_pixels", smart.max_pixels(), smart.min_pixels(), kMostPixels));
  return SmartResize{smart.factor(), smart.min_pixels(), smart.max_pixels()};
}

Result<TileGrid> parse_tile_grid(const v1::TileGrid& grid) {
  if (has_unknown_fields(grid)) return unknown_field(grid);
  MILLRACE_TRY_IN("tile", const Size tile, parse_size(grid.tile()));
  MILLRACE_TRY_VOID(check_range("min_tiles", grid.min_tiles(), 1U, TileGrid::kMostTiles));
  MILLRACE_TRY_VOID(check_range("max_tiles", grid.max_tiles(), grid.min_tiles(), TileGrid::kMostTiles));
  return TileGrid{tile, grid.min_tiles(), grid.max_tiles()};
}

Result<BoundedSides> parse_bounded(const v1::BoundedSides& sides) {
  if (has_unknown_fields(sides)) return unknown_field(sides);
  MILLRACE_TRY_VOID(check_range("shortest", sides.shortest(), 1U, kMaxSide));
  MILLRACE_TRY_VOID(check_range("longest", sides.longest(), sides.shortest(), kMaxSide));
  return BoundedSides{sides.shortest(), sides.longest()};
}

Result<Resize> parse_resize(const v1::Resize& resize) {
  if (has_unknown_fields(resize)) return unknown_field(resize);
  switch (resize.kind_case()) {
    case v1::Resize::kShorterSide:
      MILLRACE_TRY_VOID(check_range("shorter_side", resize.shorter_side(), 1U, kMaxSide));
      return Resize{ShorterSide{resize.shorter_side()}};
    case v1::Resize::kLongerSide:
      MILLRACE_TRY_VOID(check_range("longer_side", resize.longer_side(), 1U, kMaxSide));
      return Resize{LongerSide{resize.longer_side()}};
    case v1::Resize::kExact: {
      MILLRACE_TRY_IN("exact", const Size size, parse_size(resize.exact()));
      return Resize{ExactSize{size}};
    }
    case v1::Resize::kSmart: {
      MILLRACE_TRY_IN("smart", const SmartResize smart, parse_smart(resize.smart()));
      return Resize{smart};
    }
    case v1::Resize::kTileGrid: {
      MILLRACE_TRY_IN("tile_grid", const TileGrid grid, parse_tile_grid(resize.tile_grid()));
      return Resize{grid};
    }
    case v1::Resize::kBounded: {
      MILLRACE_TRY_IN("bounded", const BoundedSides sides, parse_bounded(resize.bounded()));
      return Resize{sides};
    }
    case v1::Resize::KIND_NOT_SET:
      break;
  }
  return Resize{KeepSize{}};
}

Result<Filter> parse_filter(int value) {
  return parse_enum("filter", value,
                    std::array{Filter::kBilinear, Filter::kNearest, Filter::kBox, Filter::kBilinear, Filter::kHamming,
                               Filter::kBicubic, Filter::kLanczos});
}

Result<Normalise> parse_normalise(const v1::Normalise& normalise) {
  if (has_unknown_fields(normalise)) return unknown_field(normalise);
  const int n = normalise.mean_size();
  if (n != 1 && n != 3) return field_error("mean", "must have 1 or 3 values, has " + std::to_string(n));
  if (normalise.std_size() != n)
    return field_error("std", "must have as many values as mean (" + std::to_string(n) + "), has " +
                                  std::to_string(normalise.std_size()));
  Normalise parsed;
  for (int channel = 0; channel < 3; ++channel) {
    const int i = n == 1 ? 0 : channel;
    MILLRACE_TRY_VOID(check_finite("mean[" + std::to_string(i) + "]", normalise.mean(i)));
    MILLRACE_TRY_VOID(check_finite("std[" + std::to_string(i) + "]", normalise.std(i)));
    if (normalise.std(i) == 0) return field_error("std[" + std::to_string(i) + "]", "must not be 0");
    parsed.mean[static_cast<std::size_t>(channel)] = normalise.mean(i);
    parsed.std[static_cast<std::size_t>(channel)] = normalise.std(i);
  }
  return parsed;
}

// 0 means 1 for merge and temporal.
Result<Patches> parse_patches(const v1::Patches& patches) {
  if (has_unknown_fields(patches)) return unknown_field(patches);
  MILLRACE_TRY_VOID(check_range("width", patches.width(), 1U, kMaxSide));
  MILLRACE_TRY_VOID(check_range("height", patches.height(), 1U, kMaxSide));
  MILLRACE_TRY_VOID(check_range("merge", patches.merge(), 0U, Patches::kMostMerge));
  MILLRACE_TRY_VOID(check_range("temporal", patches.temporal(), 0U, Patches::kMostTemporal));
  return Patches{{patches.width(), patches.height()}, std::max(1U, patches.merge()), std::max(1U, patches.temporal())};
}

Result<void> parse_output(const v1::Recipe& recipe, Recipe& parsed) {
  MILLRACE_TRY(parsed.range,
               parse_enum("range", recipe.range(), std::array{ValueRange::kUnit, ValueRange::kUnit, ValueRange::kRaw}));
  MILLRACE_TRY(parsed.dtype, parse_enum("dtype", recipe.dtype(),
                                        std::array{DType::kUint8, DType::kUint8, DType::kFloat16, DType::kBfloat16,
                                                   DType::kFloat32}));
  MILLRACE_TRY(parsed.layout,
               parse_enum("layout", recipe.layout(), std::array{Layout::kNchw, Layout::kNchw, Layout::kNhwc}));
  MILLRACE_TRY(parsed.channels,
               parse_enum("channels", recipe.channels(),
                          std::array{Channels::kRgb, Channels::kRgb, Channels::kBgr, Channels::kGrey}));
  MILLRACE_TRY(parsed.packing, parse_enum("packing", recipe.packing(),
                                          std::array{Packing::kOneSize, Packing::kOneSize, Packing::kPacked}));
  MILLRACE_TRY(parsed.centre_rounding,
               parse_enum("centre_rounding", recipe.centre_rounding(),
                          std::array{CentreRounding::kHalfToEven, CentreRounding::kHalfToEven, CentreRounding::kDown}));
  if (recipe.has_patches()) {
    MILLRACE_TRY_IN("patches", parsed.patches, parse_patches(recipe.patches()));
  }
  return {};
}

}  // namespace

Result<Size> parse_size(const v1::Size& size) {
  if (has_unknown_fields(size)) return unknown_field(size);
  MILLRACE_TRY_VOID(check_range("width", size.width(), 1U, kMaxSide));
  MILLRACE_TRY_VOID(check_range("height", size.height(), 1U, kMaxSide));
  return Size{size.width(), size.height()};
}

Result<Box> parse_box(const v1::Box& box) {
  if (has_unknown_fields(box)) return unknown_field(box);
  constexpr auto kMost = static_cast<std::int32_t>(kMaxSide);
  MILLRACE_TRY_VOID(check_range("left", box.left(), 0, kMost));
  MILLRACE_TRY_VOID(check_range("top", box.top(), 0, kMost));
  MILLRACE_TRY_VOID(check_range("width", box.width(), 1, kMost));
  MILLRACE_TRY_VOID(check_range("height", box.height(), 1, kMost));
  return Box{box.left(), box.top(), box.width(), box.height()};
}

Result<Recipe> parse_recipe(const v1::Recipe& recipe) {
  if (has_unknown_fields(recipe)) return unknown_field(recipe);
  Recipe parsed{.ignore_orientation = recipe.ignore_orientation()};
  MILLRACE_TRY_IN("crop", parsed.crop, parse_crop(recipe.crop()));
  MILLRACE_TRY_IN("resize", parsed.resize, parse_resize(recipe.resize()));
  MILLRACE_TRY_IN("resize", parsed.filter, parse_filter(recipe.resize().filter()));
  if (recipe.has_centre_crop()) {
    MILLRACE_TRY_IN("centre_crop", parsed.centre_crop, parse_size(recipe.centre_crop()));
  }
  const float flip = recipe.flip_probability();
  MILLRACE_TRY_VOID(check_finite("flip_probability", flip));
  if (flip < 0 || flip > 1) return field_error("flip_probability", "must be between 0 and 1, is " + to_text(flip));
  parsed.flip_probability = flip;
  if (recipe.has_normalise()) {
    MILLRACE_TRY_IN("normalise", parsed.normalise, parse_normalise(recipe.normalise()));
  }
  MILLRACE_TRY_VOID(parse_output(recipe, parsed));
  return parsed;
}

Result<OnError> parse_on_error(int value) {
  return parse_enum("on_error", value,
                    std::array{OnError::kFail, OnError::kFail, OnError::kSkip, OnError::kZero, OnError::kSubstitute});
}

Result<Fidelity> parse_fidelity(int value) {
  return parse_enum("fidelity", value, std::array{Fidelity::kExact, Fidelity::kExact, Fidelity::kFast});
}

Result<Priority> parse_priority(int value) {
  return parse_enum("priority", value,
                    std::array{Priority::kNormal, Priority::kLow, Priority::kNormal, Priority::kHigh});
}

}  // namespace millrace
