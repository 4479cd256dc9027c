#include "proto/base/recipe.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "proto/base/resized_size.h"

namespace millrace {
namespace {

// 1 for the step itself.
struct CountWithin {
  std::size_t operator()(const steps::Sequence& group) const { return 1 + count_steps(group.steps); }
  std::size_t operator()(const steps::AnyOrder& group) const { return 1 + count_steps(group.steps); }
  std::size_t operator()(const steps::OneOf& group) const { return 1 + count_steps(group.steps); }
  template <class Other>
  std::size_t operator()(const Other&) const {
    return 1;
  }
};

struct FixedCrop {
  std::optional<Size> operator()(WholeImage) const { return std::nullopt; }
  std::optional<Size> operator()(const RandomResizedCrop&) const { return std::nullopt; }
  std::optional<Size> operator()(const GridCell&) const { return std::nullopt; }
  std::optional<Size> operator()(const CentreCrop& crop) const {
    if (crop.size.width < 1 || crop.size.height < 1) return std::nullopt;
    return crop.size;
  }
  std::optional<Size> operator()(const BoxCrop& crop) const {
    if (crop.box.width < 1 || crop.box.height < 1) return std::nullopt;
    return Size{static_cast<std::uint32_t>(crop.box.width), static_cast<std::uint32_t>(crop.box.height)};
  }
};

// The most pixels that a side has after the resize, where it bounds them.
struct LongestSide {
  std::optional<std::uint32_t> operator()(const LongerSide& side) const { return side.pixels; }
  std::optional<std::uint32_t> operator()(const ShorterSide& side) const { return side.longest; }
  std::optional<std::uint32_t> operator()(const RandomShorterSide& sides) const { return sides.longest; }
  template <class Other>
  std::optional<std::uint32_t> operator()(const Other&) const {
    return std::nullopt;
  }
};

}  // namespace

std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return "uint8";
    case DType::kFloat16:
      return "float16";
    case DType::kBfloat16:
      return "bfloat16";
    case DType::kFloat32:
      return "float32";
  }
  return "unknown";
}

std::optional<Size> fixed_size(const Recipe& recipe) {
  if (recipe.centre_crop) return recipe.centre_crop;
  return fixed_padded_size(recipe);
}

// Of a resize that leaves sizes open but bounds them, what is padded up to more than the bound is fixed.
std::optional<Size> fixed_padded_size(const Recipe& recipe) {
  const std::optional<Size> resized = fixed_resized_size(recipe);
  if (!recipe.pad) return resized;
  const Pad& pad = *recipe.pad;
  const auto padded = [&](Size size) -> std::optional<Size> {
    const std::uint64_t width = std::uint64_t{size.width} + pad.left + pad.right;
    const std::uint64_t height = std::uint64_t{size.height} + pad.top + pad.bottom;
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    if (width > kMost || height > kMost) return std::nullopt;
    return Size{static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height)};
  };
  const std::optional<std::uint32_t> bound = resized ? std::nullopt : std::visit(LongestSide{}, recipe.resize);
  if (!resized && !(bound && pad.to)) return std::nullopt;
  const std::optional<Size> most = padded(resized ? *resized : Size{*bound, *bound});
  if (!most) return std::nullopt;
  if (!pad.to) return most;
  if (!resized) return most->width <= pad.to->width && most->height <= pad.to->height ? pad.to : std::nullopt;
  return Size{std::max(most->width, pad.to->width), std::max(most->height, pad.to->height)};
}

std::size_t count_steps(const std::vector<Step>& steps) {
  std::size_t all = 0;
  for (const Step& step : steps) all += std::visit(CountWithin{}, step.kind);
  return all;
}

std::optional<Bytes> fixed_tensor_bytes(const Recipe& recipe, std::uint32_t samples) {
  Bytes all{0};
  for (const Recipe& view : views_of(recipe)) {
    const std::optional<Size> size = fixed_size(view);
    if (!size) return std::nullopt;
    const Bytes tensor = image_bytes(view, *size) * samples;
    all += recipe.views.empty() ? tensor : align_up(tensor, kPackedAlignment);
  }
  return all;
}

Recipe Recipe::of_views(std::vector<Recipe> views) {
  Recipe recipe;
  if (!views.empty()) {
    const Recipe& first = views.front();
    recipe = {.ignore_orientation = first.ignore_orientation,
              .normalise = first.normalise,
              .range = first.range,
              .dtype = first.dtype,
              .layout = first.layout,
              .channels = first.channels,
              .centre_rounding = first.centre_rounding,
              .indices = first.indices};
  }
  recipe.views = std::move(views);
  return recipe;
}

// Nothing where the resize would refuse the crop, which each sample then says.
std::optional<Size> fixed_resized_size(const Recipe& recipe) {
  if (const auto* exact = std::get_if<ExactSize>(&recipe.resize)) return exact->size;
  if (std::holds_alternative<ScaleJitter>(recipe.resize) || std::holds_alternative<RandomShorterSide>(recipe.resize))
    return std::nullopt;
  const std::optional<Size> crop = std::visit(FixedCrop{}, recipe.crop);
  if (!crop || !check_resizable(recipe.resize, *crop)) return std::nullopt;
  return resized_size(recipe.resize, *crop);
}

}  // namespace millrace
