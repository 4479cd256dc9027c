#include "daemon/backend/words.h"

#include <cstdint>
#include <string>

namespace millrace {
namespace {

static_assert(static_cast<int>(Filter::kLanczos) == static_cast<int>(kernels::Filter::kLanczos));
static_assert(static_cast<int>(DType::kFloat32) == static_cast<int>(kernels::DType::kFloat32));
static_assert(static_cast<int>(Layout::kNhwc) == static_cast<int>(kernels::Layout::kNhwc));
static_assert(static_cast<int>(Channels::kGrey) == static_cast<int>(kernels::ChannelOrder::kGrey));
static_assert(static_cast<int>(ValueRange::kRaw) == static_cast<int>(kernels::ValueRange::kRaw));

// The header was checked when it was read; checked again here, where memory follows from it.
Result<void> check_limits(Size stored, const SampleLimits& limits) {
  const bool fits = stored.width >= 1 && stored.height >= 1 && stored.width <= limits.side &&
                    stored.height <= limits.side && std::uint64_t{stored.width} * stored.height <= limits.pixels;
  if (fits) return {};
  return Error{Code::kInvalid, "an image of " + std::to_string(stored.width) + "x" + std::to_string(stored.height) +
                                   " pixels is over the limits of " + std::to_string(limits.pixels) + " pixels and " +
                                   std::to_string(limits.side) + " a side"};
}

bool lies_inside(const Box& box, Size size) {
  return box.left >= 0 && box.top >= 0 && box.width >= 1 && box.height >= 1 &&
         std::int64_t{box.left} + box.width <= std::int64_t{size.width} &&
         std::int64_t{box.top} + box.height <= std::int64_t{size.height};
}

// Of one view, or of a sample that has but one.
Result<void> check_view(const SourceInfo& source, const SampleGeometry& geometry, const Recipe& recipe,
                        const Destination& out) {
  if (!lies_inside(geometry.crop, oriented_size(source)))
    return Error{Code::kInternal, "the crop lies outside the image"};
  constexpr std::uint32_t kMost = kernels::kMaxSide;
  if (geometry.resized.width > kMost || geometry.resized.height > kMost ||
      !lies_inside(geometry.window, geometry.resized))
    return Error{Code::kInternal, "the window lies outside the resized image"};
  if (geometry.canvas && (!recipe.pad || geometry.canvas->width < 1 || geometry.canvas->height < 1 ||
                          geometry.canvas->width > static_cast<std::int32_t>(kMost) ||
                          geometry.canvas->height > static_cast<std::int32_t>(kMost)))
    return Error{Code::kInternal, "the image is shown beyond its sides, and the recipe does not say what is there"};
  if (is_augmented(recipe) != geometry.draws.has_value())
    return Error{Code::kInternal, "the steps have nothing to draw from"};
  if (recipe.patches && (geometry.output().width % recipe.patches->group().width != 0 ||
                         geometry.output().height % recipe.patches->group().height != 0))
    return Error{Code::kInternal, "the image does not divide into the recipe's patches"};
  if (out.bytes != image_bytes(recipe, geometry.output()))
    return Error{Code::kInternal, "the place for the image has another size than the image"};
  return {};
}

}  // namespace

kernels::Size in_kernels(Size size) {
  return {static_cast<int>(size.width), static_cast<int>(size.height)};
}

kernels::Box in_kernels(const Box& box) {
  return {box.left, box.top, box.width, box.height};
}

kernels::StoreSpec store_spec(const Recipe& recipe) {
  kernels::StoreSpec spec{.dtype = static_cast<kernels::DType>(recipe.dtype),
                          .layout = static_cast<kernels::Layout>(recipe.layout),
                          .channels = static_cast<kernels::ChannelOrder>(recipe.channels),
                          .range = static_cast<kernels::ValueRange>(recipe.range),
                          .normalise = std::nullopt,
                          .patches = std::nullopt};
  if (recipe.normalise) spec.normalise = kernels::Normalise{recipe.normalise->mean, recipe.normalise->std};
  if (recipe.patches) {
    const auto [width, height] = in_kernels(recipe.patches->size);
    spec.patches = kernels::Patches{width, height, static_cast<int>(recipe.patches->merge),
                                    static_cast<int>(recipe.patches->temporal)};
  }
  return spec;
}

kernels::ResampleSpec resample_spec(const SampleGeometry& geometry, const Recipe& recipe, int channels) {
  return {.channels = channels,
          .source = {geometry.crop.width, geometry.crop.height},
          .target = in_kernels(geometry.resized),
          .window = in_kernels(geometry.window),
          .filter = static_cast<kernels::Filter>(geometry.filter.value_or(recipe.filter))};
}

kernels::Flip flip_of(const SampleGeometry& geometry) {
  return geometry.flip ? kernels::Flip::kHorizontal : kernels::Flip::kNone;
}

Result<void> check_task(const SampleTask& task, const Recipe& recipe, const SampleLimits& limits) {
  MILLRACE_TRY_VOID(check_limits(task.image.info.stored, limits));
  const std::size_t views = views_of(recipe).size();
  if (views_of(task.geometry).size() != views || task.further_outs.size() + 1 != views)
    return Error{Code::kInternal, "the sample has not as many views as the recipe"};
  for (std::size_t i = 0; i < views; ++i) {
    MILLRACE_TRY_VOID(
        check_view(task.image.info, views_of(task.geometry)[i], views_of(recipe)[i], task.out_of_view(i)));
  }
  return {};
}

Result<void> check_on_host(const SampleTask& task, const Recipe& recipe) {
  for (std::size_t i = 0; i < views_of(recipe).size(); ++i) {
    const Destination& out = task.out_of_view(i);
    if (out.host == nullptr)
      return Error{Code::kUnsupported, "the place for the image is in memory that a processor cannot write"};
    if (reinterpret_cast<std::uintptr_t>(out.host) % dtype_bytes(recipe.dtype).count != 0)
      return Error{Code::kInternal, "the place for the image is not aligned to its elements"};
  }
  return {};
}

Error cancelled_error() {
  return {Code::kCancelled, "stopped: nobody wants it any more"};
}

}  // namespace millrace
