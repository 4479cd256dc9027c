// Every message in this file is untrusted.
#include "proto/rpc/framing_message.h"

#include <algorithm>
#include <string>
#include <utility>

#include "proto/rpc/enum_meaning.h"
#include "proto/rpc/field.h"
#include "proto/rpc/recipe_message.h"

namespace millrace {
namespace {

using millrace::from_message;
using millrace::to_message;

constexpr Meaning<v1::CropPlace, CropPlace> kPlaces[] = {
    {v1::CROP_PLACE_UNSPECIFIED, CropPlace::kCentre},     {v1::CROP_PLACE_CENTRE, CropPlace::kCentre},
    {v1::CROP_PLACE_TOP_LEFT, CropPlace::kTopLeft},       {v1::CROP_PLACE_TOP_RIGHT, CropPlace::kTopRight},
    {v1::CROP_PLACE_BOTTOM_LEFT, CropPlace::kBottomLeft}, {v1::CROP_PLACE_BOTTOM_RIGHT, CropPlace::kBottomRight},
    {v1::CROP_PLACE_RANDOM, CropPlace::kRandom}};

constexpr Meaning<v1::Pad::Mode, Pad::Mode> kModes[] = {{v1::Pad::MODE_UNSPECIFIED, Pad::Mode::kConstant},
                                                        {v1::Pad::MODE_CONSTANT, Pad::Mode::kConstant},
                                                        {v1::Pad::MODE_EDGE, Pad::Mode::kEdge},
                                                        {v1::Pad::MODE_REFLECT, Pad::Mode::kReflect},
                                                        {v1::Pad::MODE_SYMMETRIC, Pad::Mode::kSymmetric}};

v1::RandomResizedCrop to_message(const RandomResizedCrop& crop) {
  v1::RandomResizedCrop out;
  out.set_min_scale(crop.min_scale);
  out.set_max_scale(crop.max_scale);
  out.set_min_ratio(crop.min_ratio);
  out.set_max_ratio(crop.max_ratio);
  return out;
}

// 0 means torchvision's default.
Result<RandomResizedCrop> from_message(const v1::RandomResizedCrop& crop) {
  if (has_unknown_fields(crop)) return unknown_field(crop);
  const auto value_or = [](float value, float otherwise) { return value == 0 ? otherwise : value; };
  const RandomResizedCrop defaults;
  return RandomResizedCrop{.min_scale = value_or(crop.min_scale(), defaults.min_scale),
                           .max_scale = value_or(crop.max_scale(), defaults.max_scale),
                           .min_ratio = value_or(crop.min_ratio(), defaults.min_ratio),
                           .max_ratio = value_or(crop.max_ratio(), defaults.max_ratio)};
}

v1::GridCell to_message(const GridCell& cell) {
  v1::GridCell out;
  out.set_columns(cell.columns);
  out.set_rows(cell.rows);
  out.set_column(cell.column);
  out.set_row(cell.row);
  return out;
}

Result<GridCell> from_message(const v1::GridCell& cell) {
  if (has_unknown_fields(cell)) return unknown_field(cell);
  return GridCell{.columns = cell.columns(), .rows = cell.rows(), .column = cell.column(), .row = cell.row()};
}

struct FillCrop {
  v1::Crop& out;
  void operator()(WholeImage) const {}
  void operator()(const CentreCrop& crop) const { *out.mutable_centre() = to_message(crop.size); }
  void operator()(const RandomResizedCrop& crop) const { *out.mutable_random_resized() = to_message(crop); }
  void operator()(const BoxCrop& crop) const { *out.mutable_box() = to_message(crop.box); }
  void operator()(const GridCell& cell) const { *out.mutable_cell() = to_message(cell); }
};

v1::SmartResize to_message(const SmartResize& smart) {
  v1::SmartResize out;
  out.set_factor(smart.factor);
  out.set_min_pixels(smart.min_pixels);
  out.set_max_pixels(smart.max_pixels);
  return out;
}

Result<SmartResize> from_message(const v1::SmartResize& smart) {
  if (has_unknown_fields(smart)) return unknown_field(smart);
  return SmartResize{.factor = smart.factor(), .min_pixels = smart.min_pixels(), .max_pixels = smart.max_pixels()};
}

v1::TileGrid to_message(const TileGrid& grid) {
  v1::TileGrid out;
  *out.mutable_tile() = to_message(grid.tile);
  out.set_min_tiles(grid.min_tiles);
  out.set_max_tiles(grid.max_tiles);
  return out;
}

Result<TileGrid> from_message(const v1::TileGrid& grid) {
  if (has_unknown_fields(grid)) return unknown_field(grid);
  MILLRACE_TRY_IN("tile", const Size tile, from_message(grid.tile()));
  return TileGrid{.tile = tile, .min_tiles = grid.min_tiles(), .max_tiles = grid.max_tiles()};
}

v1::BoundedSides to_message(const BoundedSides& sides) {
  v1::BoundedSides out;
  out.set_shortest(sides.shortest);
  out.set_longest(sides.longest);
  return out;
}

Result<BoundedSides> from_message(const v1::BoundedSides& sides) {
  if (has_unknown_fields(sides)) return unknown_field(sides);
  return BoundedSides{.shortest = sides.shortest(), .longest = sides.longest()};
}

v1::ScaleJitter to_message(const ScaleJitter& jitter) {
  v1::ScaleJitter out;
  *out.mutable_target() = to_message(jitter.target);
  out.mutable_scale()->set_low(jitter.scale.low);
  out.mutable_scale()->set_high(jitter.scale.high);
  return out;
}

Result<ScaleJitter> from_message(const v1::ScaleJitter& jitter) {
  if (has_unknown_fields(jitter)) return unknown_field(jitter);
  if (has_unknown_fields(jitter.scale())) return inside("scale", unknown_field(jitter.scale()));
  MILLRACE_TRY_IN("target", const Size target, from_message(jitter.target()));
  return ScaleJitter{.target = target, .scale = {jitter.scale().low(), jitter.scale().high()}};
}

v1::RandomShorterSide to_message(const RandomShorterSide& sides) {
  v1::RandomShorterSide out;
  out.mutable_sides()->Add(sides.sides.begin(), sides.sides.end());
  out.set_longest(sides.longest.value_or(0));
  return out;
}

Result<RandomShorterSide> from_message(const v1::RandomShorterSide& sides) {
  if (has_unknown_fields(sides)) return unknown_field(sides);
  if (sides.sides_size() > static_cast<int>(RandomShorterSide::kMost))
    return field_error("sides", "must be at most " + std::to_string(RandomShorterSide::kMost) + ", are " +
                                    std::to_string(sides.sides_size()));
  return RandomShorterSide{.sides = {sides.sides().begin(), sides.sides().end()},
                           .longest = sides.longest() != 0 ? std::optional(sides.longest()) : std::nullopt};
}

struct FillResize {
  v1::Resize& out;
  void operator()(KeepSize) const {}
  void operator()(const ShorterSide& side) const {
    out.set_shorter_side(side.pixels);
    if (side.longest) out.set_longest(*side.longest);
  }
  void operator()(const LongerSide& side) const { out.set_longer_side(side.pixels); }
  void operator()(const ExactSize& exact) const { *out.mutable_exact() = to_message(exact.size); }
  void operator()(const SmartResize& smart) const { *out.mutable_smart() = to_message(smart); }
  void operator()(const TileGrid& grid) const { *out.mutable_tile_grid() = to_message(grid); }
  void operator()(const BoundedSides& sides) const { *out.mutable_bounded() = to_message(sides); }
  void operator()(const ScaleJitter& jitter) const { *out.mutable_scale_jitter() = to_message(jitter); }
  void operator()(const RandomShorterSide& sides) const { *out.mutable_random_shorter_side() = to_message(sides); }
};

}  // namespace

v1::Crop to_message(const Crop& crop) {
  v1::Crop out;
  std::visit(FillCrop{out}, crop);
  return out;
}

Result<Crop> from_message(const v1::Crop& crop) {
  if (has_unknown_fields(crop)) return unknown_field(crop);
  switch (crop.kind_case()) {
    case v1::Crop::kCentre: {
      MILLRACE_TRY_IN("centre", const Size size, from_message(crop.centre()));
      return Crop{CentreCrop{size}};
    }
    case v1::Crop::kRandomResized: {
      MILLRACE_TRY_IN("random_resized", const RandomResizedCrop random, from_message(crop.random_resized()));
      return Crop{random};
    }
    case v1::Crop::kBox: {
      MILLRACE_TRY_IN("box", const Box box, from_message(crop.box()));
      return Crop{BoxCrop{box}};
    }
    case v1::Crop::kCell: {
      MILLRACE_TRY_IN("cell", const GridCell cell, from_message(crop.cell()));
      return Crop{cell};
    }
    case v1::Crop::KIND_NOT_SET:
      break;
  }
  return Crop{WholeImage{}};
}

v1::Resize to_message(const Resize& resize) {
  v1::Resize out;
  std::visit(FillResize{out}, resize);
  return out;
}

Result<Resize> from_message(const v1::Resize& resize) {
  if (has_unknown_fields(resize)) return unknown_field(resize);
  if (resize.has_longest() && !resize.has_shorter_side())
    return field_error("longest", "is a bound of shorter_side alone: set that, or leave longest out");
  switch (resize.kind_case()) {
    case v1::Resize::kShorterSide:
      return Resize{ShorterSide{.pixels = resize.shorter_side(),
                                .longest = resize.has_longest() ? std::optional(resize.longest()) : std::nullopt}};
    case v1::Resize::kLongerSide:
      return Resize{LongerSide{resize.longer_side()}};
    case v1::Resize::kExact: {
      MILLRACE_TRY_IN("exact", const Size size, from_message(resize.exact()));
      return Resize{ExactSize{size}};
    }
    case v1::Resize::kSmart: {
      MILLRACE_TRY_IN("smart", const SmartResize smart, from_message(resize.smart()));
      return Resize{smart};
    }
    case v1::Resize::kTileGrid: {
      MILLRACE_TRY_IN("tile_grid", const TileGrid grid, from_message(resize.tile_grid()));
      return Resize{grid};
    }
    case v1::Resize::kBounded: {
      MILLRACE_TRY_IN("bounded", const BoundedSides sides, from_message(resize.bounded()));
      return Resize{sides};
    }
    case v1::Resize::kScaleJitter: {
      MILLRACE_TRY_IN("scale_jitter", const ScaleJitter jitter, from_message(resize.scale_jitter()));
      return Resize{jitter};
    }
    case v1::Resize::kRandomShorterSide: {
      MILLRACE_TRY_IN("random_shorter_side", RandomShorterSide sides, from_message(resize.random_shorter_side()));
      return Resize{std::move(sides)};
    }
    case v1::Resize::KIND_NOT_SET:
      break;
  }
  return Resize{KeepSize{}};
}

v1::Pad to_message(const Pad& pad) {
  v1::Pad out;
  out.set_left(pad.left);
  out.set_top(pad.top);
  out.set_right(pad.right);
  out.set_bottom(pad.bottom);
  if (pad.to) *out.mutable_to() = to_message(*pad.to);
  out.set_place(message_of(kPlaces, pad.place));
  out.set_mode(message_of(kModes, pad.mode));
  out.set_fill(std::string(pad.fill.begin(), pad.fill.end()));
  return out;
}

Result<Pad> from_message(const v1::Pad& pad) {
  if (has_unknown_fields(pad)) return unknown_field(pad);
  Pad parsed{.left = pad.left(), .top = pad.top(), .right = pad.right(), .bottom = pad.bottom()};
  if (pad.has_to()) {
    MILLRACE_TRY_IN("to", parsed.to, from_message(pad.to()));
  }
  MILLRACE_TRY(parsed.place, meaning_of("place", kPlaces, pad.place()));
  MILLRACE_TRY(parsed.mode, meaning_of("mode", kModes, pad.mode()));
  if (!pad.fill().empty() && pad.fill().size() != parsed.fill.size())
    return field_error("fill",
                       "must be 3 bytes, red, green and blue, or none: has " + std::to_string(pad.fill().size()));
  std::copy(pad.fill().begin(), pad.fill().end(), parsed.fill.begin());
  return parsed;
}

v1::CropPlace to_message(CropPlace place) {
  return message_of(kPlaces, place);
}
Result<CropPlace> from_message(std::string_view field, v1::CropPlace place) {
  return meaning_of(field, kPlaces, place);
}

}  // namespace millrace
