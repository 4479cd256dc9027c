#include "daemon/plan/draw_geometry.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "daemon/draw/random.h"
#include "daemon/draw/step_cost.h"
#include "proto/base/resized_size.h"

namespace millrace {
namespace {

std::string to_text(Size size) {
  return std::to_string(size.width) + "x" + std::to_string(size.height);
}

Box whole(Size size) {
  return {0, 0, static_cast<std::int32_t>(size.width), static_cast<std::int32_t>(size.height)};
}

Size size_of(const Box& box) {
  return {static_cast<std::uint32_t>(box.width), static_cast<std::uint32_t>(box.height)};
}

// int(round((outer - inner) / 2.0)) as Python rounds: halves to the even neighbour. REQUIRES: inner <= outer.
std::int32_t centred(std::uint32_t outer, std::uint32_t inner) {
  const std::uint32_t rest = outer - inner, half = rest / 2;
  return static_cast<std::int32_t>(rest % 2 == 0 ? half : half + half % 2);
}

std::int32_t offset_of(std::uint32_t outer, std::uint32_t inner, CentreRounding rounding) {
  if (rounding == CentreRounding::kDown) return static_cast<std::int32_t>((outer - inner) / 2);
  return centred(outer, inner);
}

// Images smaller than the crop, which torchvision and transformers pad, are refused.
Result<void> check_crop(Size image, Size size) {
  if (size.width <= image.width && size.height <= image.height) return {};
  return Error{Code::kInvalid, "the centre crop of " + to_text(size) + " is larger than the image of " +
                                   to_text(image) + " pixels: resize it first, or crop less"};
}

// The center_crop() of torchvision or transformers.
Result<Box> centre_box(Size image, Size size, CentreRounding rounding) {
  MILLRACE_TRY_VOID(check_crop(image, size));
  return Box{offset_of(image.width, size.width, rounding), offset_of(image.height, size.height, rounding),
             static_cast<std::int32_t>(size.width), static_cast<std::int32_t>(size.height)};
}

// Part `i` of a side cut into `parts`, as its beginning and length.
std::pair<std::int32_t, std::int32_t> part_of(std::uint32_t side, std::uint32_t parts, std::uint32_t i) {
  const std::uint64_t begin = std::uint64_t{side} * i / parts, end = std::uint64_t{side} * (i + 1) / parts;
  return {static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end - begin)};
}

Result<Box> cell_box(Size image, const GridCell& cell) {
  if (image.width < cell.columns || image.height < cell.rows) {
    return Error{Code::kInvalid, "an image of " + to_text(image) + " pixels does not divide into " +
                                     std::to_string(cell.columns) + "x" + std::to_string(cell.rows) + " cells"};
  }
  const auto [left, width] = part_of(image.width, cell.columns, cell.column);
  const auto [top, height] = part_of(image.height, cell.rows, cell.row);
  return Box{left, top, width, height};
}

Result<Box> checked_box(Size image, const Box& box) {
  const bool inside = box.left >= 0 && box.top >= 0 && box.width >= 1 && box.height >= 1 &&
                      std::int64_t{box.left} + box.width <= image.width &&
                      std::int64_t{box.top} + box.height <= image.height;
  if (inside) return box;
  return Error{Code::kInvalid, "the box at " + std::to_string(box.left) + "," + std::to_string(box.top) + " of " +
                                   std::to_string(box.width) + "x" + std::to_string(box.height) +
                                   " pixels is not within the image of " + to_text(image)};
}

// The whole of the image that keeps the nearest allowed ratio, in the middle. torchvision would make a side 0 of images
// one pixel wide.
Box central_fallback(Size image, const RandomResizedCrop& crop) {
  const double width = image.width, height = image.height, ratio = width / height;
  double w = width, h = height;
  if (ratio < crop.min_ratio) {
    h = std::max(1.0, std::nearbyint(width / crop.min_ratio));
  } else if (ratio > crop.max_ratio) {
    w = std::max(1.0, std::nearbyint(height * crop.max_ratio));
  }
  const auto iw = static_cast<std::int32_t>(w), ih = static_cast<std::int32_t>(h);
  return {(static_cast<std::int32_t>(image.width) - iw) / 2, (static_cast<std::int32_t>(image.height) - ih) / 2, iw,
          ih};
}

// torchvision's RandomResizedCrop.get_params(), in double precision, from our own numbers. nearbyint() rounds halves to
// even, as Python does.
Box random_resized_box(Size image, const RandomResizedCrop& crop, RandomStream random) {
  constexpr int kAttempts = 10;
  const double area = static_cast<double>(image.width) * static_cast<double>(image.height);
  const double low = std::log(static_cast<double>(crop.min_ratio)),
               high = std::log(static_cast<double>(crop.max_ratio));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double target = area * random.uniform(crop.min_scale, crop.max_scale);
    const double ratio = std::exp(random.uniform(low, high));
    const double width = std::nearbyint(std::sqrt(target * ratio));
    const double height = std::nearbyint(std::sqrt(target / ratio));
    if (!(width >= 1 && width <= image.width && height >= 1 && height <= image.height)) continue;
    const auto w = static_cast<std::uint32_t>(width), h = static_cast<std::uint32_t>(height);
    const std::uint64_t top = random.below(std::uint64_t{image.height} - h + 1);
    const std::uint64_t left = random.below(std::uint64_t{image.width} - w + 1);
    return {static_cast<std::int32_t>(left), static_cast<std::int32_t>(top), static_cast<std::int32_t>(w),
            static_cast<std::int32_t>(h)};
  }
  return central_fallback(image, crop);
}

struct DrawCrop {
  Size image;
  RandomKey key;
  CentreRounding rounding;

  Result<Box> operator()(WholeImage) const { return whole(image); }
  Result<Box> operator()(const CentreCrop& crop) const { return centre_box(image, crop.size, rounding); }
  Result<Box> operator()(const RandomResizedCrop& crop) const {
    return random_resized_box(image, crop, RandomStream(key, RandomStream::Use::kCrop));
  }
  Result<Box> operator()(const BoxCrop& crop) const { return checked_box(image, crop.box); }
  Result<Box> operator()(const GridCell& cell) const { return cell_box(image, cell); }
};

Result<void> check_output(Size resized, std::uint32_t max_side) {
  if (resized.width <= max_side && resized.height <= max_side) return {};
  return Error{Code::kInvalid, "would be resized to " + to_text(resized) + " pixels, over the limit of " +
                                   std::to_string(max_side) + " a side (limits.side)"};
}

Result<void> check_patches(Size output, const Patches& patches) {
  const Size group = patches.group();
  if (output.width % group.width == 0 && output.height % group.height == 0) return {};
  return Error{Code::kInvalid, "comes out as " + to_text(output) + " pixels, which do not divide into groups of " +
                                   to_text(group) + " (recipe.patches): resize it to multiples of that"};
}

// Where a part of a size lies within another at least as large along that side. A random one is drawn top first, as
// torchvision's crops are; nothing is drawn where there is but one place.
struct Place {
  std::uint64_t left = 0, top = 0;
};
Place place_of(CropPlace place, std::uint64_t free_width, std::uint64_t free_height, RandomStream random) {
  switch (place) {
    case CropPlace::kCentre:
      return {free_width / 2, free_height / 2};
    case CropPlace::kTopLeft:
      return {};
    case CropPlace::kTopRight:
      return {free_width, 0};
    case CropPlace::kBottomLeft:
      return {0, free_height};
    case CropPlace::kBottomRight:
      return {free_width, free_height};
    case CropPlace::kRandom:
      break;
  }
  if (free_width == 0 && free_height == 0) return {};
  const std::uint64_t top = random.below(free_height + 1);
  return {random.below(free_width + 1), top};
}

// Where Recipe::centre_crop lies in what resize and pad have made.
Result<Box> window_box(Size image, const Recipe& recipe, RandomKey key) {
  const Size size = *recipe.centre_crop;
  if (recipe.crop_place == CropPlace::kCentre) return centre_box(image, size, recipe.centre_rounding);
  MILLRACE_TRY_VOID(check_crop(image, size));
  const Place place = place_of(recipe.crop_place, image.width - size.width, image.height - size.height,
                               RandomStream(key, RandomStream::Use::kCropPlace));
  return Box{static_cast<std::int32_t>(place.left), static_cast<std::int32_t>(place.top),
             static_cast<std::int32_t>(size.width), static_cast<std::int32_t>(size.height)};
}

// Of the resized image, what there is of it when it is padded; beyond its sides where it is.
Result<Box> padded_box(Size image, const Pad& pad, RandomKey key, std::uint32_t max_side) {
  const std::uint64_t width = std::uint64_t{image.width} + pad.left + pad.right;
  const std::uint64_t height = std::uint64_t{image.height} + pad.top + pad.bottom;
  const Size to = pad.to.value_or(Size{1, 1});
  const std::uint64_t missing_width = to.width > width ? to.width - width : 0;
  const std::uint64_t missing_height = to.height > height ? to.height - height : 0;
  if (width + missing_width > max_side || height + missing_height > max_side)
    return Error{Code::kInvalid, "would be padded to " + std::to_string(width + missing_width) + "x" +
                                     std::to_string(height + missing_height) + " pixels, over the limit of " +
                                     std::to_string(max_side) + " a side (limits.side)"};
  const Place place =
      place_of(pad.place, missing_width, missing_height, RandomStream(key, RandomStream::Use::kPadPlace));
  return Box{-static_cast<std::int32_t>(pad.left + place.left), -static_cast<std::int32_t>(pad.top + place.top),
             static_cast<std::int32_t>(width + missing_width), static_cast<std::int32_t>(height + missing_height)};
}

// The resize with what it draws drawn.
Resize drawn_resize(const Resize& resize, Size crop, RandomKey key) {
  RandomStream random(key, RandomStream::Use::kResize);
  if (const auto* sides = std::get_if<RandomShorterSide>(&resize))
    return ShorterSide{sides->sides[static_cast<std::size_t>(random.below(sides->sides.size()))], sides->longest};
  const auto* jitter = std::get_if<ScaleJitter>(&resize);
  if (jitter == nullptr) return resize;
  const double scale = random.uniform(jitter->scale.low, jitter->scale.high);
  const double by = std::min(static_cast<double>(jitter->target.height) / crop.height,
                             static_cast<double>(jitter->target.width) / crop.width) *
                    scale;
  const auto side = [&](std::uint32_t pixels) {
    return static_cast<std::uint32_t>(
        std::clamp(pixels * by, 1.0, static_cast<double>(std::numeric_limits<std::int32_t>::max())));
  };
  return ExactSize{{side(crop.width), side(crop.height)}};
}

Box shared_by(const Box& a, const Box& b) {
  const std::int32_t left = std::max(a.left, b.left), top = std::max(a.top, b.top);
  return {left, top, std::min(a.left + a.width, b.left + b.width) - left,
          std::min(a.top + a.height, b.top + b.height) - top};
}

// What is shown of an image that is padded, if anything beyond it is.
void set_canvas(const Pad& pad, const Box& shown, SampleGeometry& geometry) {
  const Box all = whole(geometry.resized), there = shared_by(all, shown);
  geometry.window = there;
  if (there == shown) return;
  geometry.canvas = shown;
  const bool is_empty = there.width < 1 || there.height < 1;
  if (pad.mode != Pad::Mode::kConstant) {
    geometry.window = all;  // any of it may be mirrored
  } else if (is_empty) {
    geometry.window = {0, 0, 1, 1};
  }
}

Result<SampleGeometry> draw_view(const Recipe& recipe, const SampleOverrides& overrides, Size image, RandomKey key,
                                 std::uint32_t max_side) {
  SampleGeometry geometry;
  MILLRACE_TRY(geometry.crop, overrides.box ? checked_box(image, *overrides.box)
                                            : std::visit(DrawCrop{image, key, recipe.centre_rounding}, recipe.crop));
  const Resize resize =
      overrides.size ? Resize{ExactSize{*overrides.size}} : drawn_resize(recipe.resize, size_of(geometry.crop), key);
  MILLRACE_TRY_VOID(check_resizable(resize, size_of(geometry.crop)));
  geometry.resized = resized_size(resize, size_of(geometry.crop));
  MILLRACE_TRY_VOID(check_output(geometry.resized, max_side));
  Box shown = whole(geometry.resized);
  if (recipe.pad) {
    MILLRACE_TRY(shown, padded_box(geometry.resized, *recipe.pad, key, max_side));
  }
  if (recipe.centre_crop) {
    MILLRACE_TRY(const Box window, window_box(size_of(shown), recipe, key));
    shown = {shown.left + window.left, shown.top + window.top, window.width, window.height};
  }
  geometry.window = shown;
  if (recipe.pad) set_canvas(*recipe.pad, shown, geometry);
  if (!recipe.random_filters.empty())
    geometry.filter = recipe.random_filters[static_cast<std::size_t>(
        RandomStream(key, RandomStream::Use::kFilter).below(recipe.random_filters.size()))];
  if (recipe.patches) MILLRACE_TRY_VOID(check_patches(geometry.output(), *recipe.patches));
  if (recipe.flip_probability > 0)
    geometry.flip = RandomStream(key, RandomStream::Use::kFlip).uniform() < recipe.flip_probability;
  if (is_augmented(recipe)) {
    geometry.draws = key;
    geometry.step_pixel_ps = step_pixel_ps(recipe);
    geometry.kept_pictures = kept_pictures(recipe);
  }
  return geometry;
}

// The smallest box around both.
Box around(const Box& a, const Box& b) {
  const std::int32_t left = std::min(a.left, b.left), top = std::min(a.top, b.top);
  return {left, top, std::max(a.left + a.width, b.left + b.width) - left,
          std::max(a.top + a.height, b.top + b.height) - top};
}

}  // namespace

Result<SampleGeometry> draw_geometry(const Recipe& recipe, const SampleOverrides& overrides, const SourceInfo& source,
                                     RandomKey key, std::uint32_t max_side) {
  const Size image = oriented_size(source);
  constexpr std::uint32_t kMost = std::numeric_limits<std::int32_t>::max();
  if (image.width < 1 || image.height < 1 || image.width > kMost || image.height > kMost)
    return Error{Code::kInvalid, "an image of " + to_text(image) + " pixels cannot be cropped"};
  const std::uint32_t most = std::min(max_side, kMost);
  if (recipe.views.empty()) return draw_view(recipe, overrides, image, key, most);
  if (overrides.box || overrides.size)
    return Error{Code::kInvalid, "a sample with a box or size of its own is not made in several views"};
  std::vector<SampleGeometry> views;
  views.reserve(recipe.views.size());
  for (const Recipe& view : recipe.views) {
    key.view = static_cast<std::uint16_t>(views.size());
    MILLRACE_TRY(views.emplace_back(), draw_view(view, overrides, image, key, most));
  }
  SampleGeometry all = views.front();
  for (const SampleGeometry& view : views) all.crop = around(all.crop, view.crop);
  all.views = std::move(views);
  return all;
}

}  // namespace millrace
