// Every message in this file is untrusted.
#include "proto/rpc/recipe_message.h"

#include <algorithm>
#include <string>

#include "proto/rpc/enum_meaning.h"
#include "proto/rpc/field.h"
#include "proto/rpc/framing_message.h"
#include "proto/rpc/parse_text.h"
#include "proto/rpc/step_message.h"

namespace millrace {
namespace {

using millrace::from_message;
using millrace::to_message;

constexpr Meaning<v1::DType, DType> kDTypes[] = {{v1::DTYPE_UNSPECIFIED, DType::kUint8},
                                                 {v1::DTYPE_UINT8, DType::kUint8},
                                                 {v1::DTYPE_FLOAT16, DType::kFloat16},
                                                 {v1::DTYPE_BFLOAT16, DType::kBfloat16},
                                                 {v1::DTYPE_FLOAT32, DType::kFloat32}};
constexpr Meaning<v1::Layout, Layout> kLayouts[] = {
    {v1::LAYOUT_UNSPECIFIED, Layout::kNchw}, {v1::LAYOUT_NCHW, Layout::kNchw}, {v1::LAYOUT_NHWC, Layout::kNhwc}};
constexpr Meaning<v1::Channels, Channels> kChannels[] = {{v1::CHANNELS_UNSPECIFIED, Channels::kRgb},
                                                         {v1::CHANNELS_RGB, Channels::kRgb},
                                                         {v1::CHANNELS_BGR, Channels::kBgr},
                                                         {v1::CHANNELS_GREY, Channels::kGrey}};
constexpr Meaning<v1::Filter, Filter> kFilters[] = {{v1::FILTER_UNSPECIFIED, Filter::kBilinear},
                                                    {v1::FILTER_NEAREST, Filter::kNearest},
                                                    {v1::FILTER_BOX, Filter::kBox},
                                                    {v1::FILTER_BILINEAR, Filter::kBilinear},
                                                    {v1::FILTER_HAMMING, Filter::kHamming},
                                                    {v1::FILTER_BICUBIC, Filter::kBicubic},
                                                    {v1::FILTER_LANCZOS, Filter::kLanczos}};
constexpr Meaning<v1::ValueRange, ValueRange> kRanges[] = {{v1::VALUE_RANGE_UNSPECIFIED, ValueRange::kUnit},
                                                           {v1::VALUE_RANGE_UNIT, ValueRange::kUnit},
                                                           {v1::VALUE_RANGE_RAW, ValueRange::kRaw}};
constexpr Meaning<v1::Packing, Packing> kPackings[] = {{v1::PACKING_UNSPECIFIED, Packing::kOneSize},
                                                       {v1::PACKING_ONE_SIZE, Packing::kOneSize},
                                                       {v1::PACKING_PACKED, Packing::kPacked}};
constexpr Meaning<v1::CentreRounding, CentreRounding> kRoundings[] = {
    {v1::CENTRE_ROUNDING_UNSPECIFIED, CentreRounding::kHalfToEven},
    {v1::CENTRE_ROUNDING_HALF_TO_EVEN, CentreRounding::kHalfToEven},
    {v1::CENTRE_ROUNDING_DOWN, CentreRounding::kDown}};

v1::Normalise to_message(const Normalise& normalise) {
  v1::Normalise out;
  out.mutable_mean()->Add(normalise.mean.begin(), normalise.mean.end());
  out.mutable_std()->Add(normalise.std.begin(), normalise.std.end());
  return out;
}

// One value stands for every channel.
Result<Normalise> from_message(const v1::Normalise& normalise) {
  if (has_unknown_fields(normalise)) return unknown_field(normalise);
  const int n = normalise.mean_size();
  if (n != 1 && n != 3) return field_error("mean", "must have 1 or 3 values, has " + std::to_string(n));
  if (normalise.std_size() != n)
    return field_error("std", "must have as many values as mean (" + std::to_string(n) + "), has " +
                                  std::to_string(normalise.std_size()));
  Normalise parsed;
  for (int channel = 0; channel < 3; ++channel) {
    const int i = n == 1 ? 0 : channel;
    parsed.mean[static_cast<std::size_t>(channel)] = normalise.mean(i);
    parsed.std[static_cast<std::size_t>(channel)] = normalise.std(i);
  }
  return parsed;
}

v1::Patches to_message(const Patches& patches) {
  v1::Patches out;
  out.set_width(patches.size.width);
  out.set_height(patches.size.height);
  out.set_merge(patches.merge);
  out.set_temporal(patches.temporal);
  return out;
}

// 0 means 1 for merge and temporal.
Result<Patches> from_message(const v1::Patches& patches) {
  if (has_unknown_fields(patches)) return unknown_field(patches);
  return Patches{.size = {patches.width(), patches.height()},
                 .merge = std::max(1U, patches.merge()),
                 .temporal = std::max(1U, patches.temporal())};
}

Result<std::vector<Filter>> read_filters(const v1::Resize& resize) {
  if (resize.random_filters_size() > static_cast<int>(Recipe::kMostFilters))
    return field_error("random_filters", "must be at most " + std::to_string(Recipe::kMostFilters) + ", are " +
                                             std::to_string(resize.random_filters_size()));
  std::vector<Filter> filters;
  for (int i = 0; i < resize.random_filters_size(); ++i) {
    MILLRACE_TRY(filters.emplace_back(), meaning_of("random_filters", kFilters, resize.random_filters(i)));
  }
  return filters;
}

// The fields that a Recipe and a View both have.
template <class Message>
void fill_view(const Recipe& recipe, Message& out) {
  if (!std::holds_alternative<WholeImage>(recipe.crop)) *out.mutable_crop() = to_message(recipe.crop);
  // A sample that brings its own size is made with the filter, too.
  if (!std::holds_alternative<KeepSize>(recipe.resize) || recipe.filter != Filter::kBilinear) {
    *out.mutable_resize() = to_message(recipe.resize);
    out.mutable_resize()->set_filter(message_of(kFilters, recipe.filter));
  }
  for (const Filter filter : recipe.random_filters)
    out.mutable_resize()->add_random_filters(message_of(kFilters, filter));
  if (recipe.pad) *out.mutable_pad() = to_message(*recipe.pad);
  if (recipe.centre_crop) *out.mutable_centre_crop() = to_message(*recipe.centre_crop);
  if (recipe.crop_place != CropPlace::kCentre) out.set_crop_place(to_message(recipe.crop_place));
  out.set_flip_probability(recipe.flip_probability);
  to_messages(recipe.steps, *out.mutable_steps());
  if (recipe.erasing) *out.mutable_erasing() = to_message(*recipe.erasing);
}

template <class Message>
Result<void> read_view(const Message& message, Recipe& parsed) {
  parsed.flip_probability = message.flip_probability();
  MILLRACE_TRY_IN("crop", parsed.crop, from_message(message.crop()));
  MILLRACE_TRY_IN("resize", parsed.resize, from_message(message.resize()));
  MILLRACE_TRY_IN("resize", parsed.filter, meaning_of("filter", kFilters, message.resize().filter()));
  MILLRACE_TRY_IN("resize", parsed.random_filters, read_filters(message.resize()));
  if (message.has_pad()) {
    MILLRACE_TRY_IN("pad", parsed.pad, from_message(message.pad()));
  }
  if (message.has_centre_crop()) {
    MILLRACE_TRY_IN("centre_crop", parsed.centre_crop, from_message(message.centre_crop()));
  }
  MILLRACE_TRY(parsed.crop_place, from_message("crop_place", message.crop_place()));
  MILLRACE_TRY(parsed.steps, from_messages(message.steps()));
  if (message.has_erasing()) {
    MILLRACE_TRY_IN("erasing", parsed.erasing, from_message(message.erasing()));
  }
  return {};
}

void fill_views(const Recipe& recipe, v1::Recipe& out) {
  const Recipe* last = nullptr;
  for (const Recipe& view : recipe.views) {
    if (last == nullptr || view != *last) out.add_views();
    v1::View& message = *out.mutable_views(out.views_size() - 1);
    message.set_count(message.count() + 1);
    if (message.count() == 1) fill_view(view, message);
    last = &view;
  }
}

// A message of a few bytes may stand for many views: what they all take is bounded before any is copied.
Result<void> read_views(const v1::Recipe& recipe, Recipe& parsed) {
  std::uint64_t views = 0, steps = 0;
  for (int i = 0; i < recipe.views_size(); ++i) {
    const v1::View& message = recipe.views(i);
    if (has_unknown_fields(message)) return inside("views", i, unknown_field(message));
    const std::uint32_t count = std::max(1U, message.count());
    views += count;
    if (views > Recipe::kMostViews)
      return field_error("views", "must be at most " + std::to_string(Recipe::kMostViews) + " in all");
    Recipe view = Recipe::of_views({parsed});  // what all views share
    view.views.clear();
    if (Result<void> read = read_view(message, view); !read) return inside("views", i, std::move(read).error());
    steps += std::uint64_t{count} * count_steps(view.steps);
    if (steps > Recipe::kMostStepsOfViews)
      return field_error("views",
                         "must have at most " + std::to_string(Recipe::kMostStepsOfViews) + " steps in all views");
    parsed.views.insert(parsed.views.end(), count, view);
  }
  return {};
}

// Of from_message(): the fields that each stand for themselves.
Result<void> read_choices(const v1::Recipe& recipe, Recipe& parsed) {
  MILLRACE_TRY(parsed.range, meaning_of("range", kRanges, recipe.range()));
  MILLRACE_TRY(parsed.dtype, from_message("dtype", recipe.dtype()));
  MILLRACE_TRY(parsed.layout, meaning_of("layout", kLayouts, recipe.layout()));
  MILLRACE_TRY(parsed.channels, meaning_of("channels", kChannels, recipe.channels()));
  MILLRACE_TRY(parsed.packing, meaning_of("packing", kPackings, recipe.packing()));
  MILLRACE_TRY(parsed.centre_rounding, meaning_of("centre_rounding", kRoundings, recipe.centre_rounding()));
  return {};
}

}  // namespace

v1::Recipe to_message(const Recipe& recipe) {
  v1::Recipe out;
  out.set_ignore_orientation(recipe.ignore_orientation);
  fill_view(recipe, out);
  if (recipe.normalise) *out.mutable_normalise() = to_message(*recipe.normalise);
  out.set_range(message_of(kRanges, recipe.range));
  out.set_dtype(to_message(recipe.dtype));
  out.set_layout(message_of(kLayouts, recipe.layout));
  out.set_channels(message_of(kChannels, recipe.channels));
  out.set_packing(message_of(kPackings, recipe.packing));
  if (recipe.patches) *out.mutable_patches() = to_message(*recipe.patches);
  out.set_centre_rounding(message_of(kRoundings, recipe.centre_rounding));
  if (recipe.indices) out.set_indices(true);
  fill_views(recipe, out);
  return out;
}

Result<Recipe> from_message(const v1::Recipe& recipe) {
  if (has_unknown_fields(recipe)) return unknown_field(recipe);
  Recipe parsed{.ignore_orientation = recipe.ignore_orientation(), .indices = recipe.indices()};
  MILLRACE_TRY_VOID(read_view(recipe, parsed));
  if (recipe.has_normalise()) {
    MILLRACE_TRY_IN("normalise", parsed.normalise, from_message(recipe.normalise()));
  }
  MILLRACE_TRY_VOID(read_choices(recipe, parsed));
  if (recipe.has_patches()) {
    MILLRACE_TRY_IN("patches", parsed.patches, from_message(recipe.patches()));
  }
  MILLRACE_TRY_VOID(read_views(recipe, parsed));
  return parsed;
}

Result<std::vector<Recipe>> views_from_text(const std::string& text) {
  v1::Recipe recipe;
  MILLRACE_TRY_VOID(parse_text(text, *recipe.add_views()));
  Recipe parsed;
  MILLRACE_TRY_VOID(read_views(recipe, parsed));
  return std::move(parsed.views);
}

v1::Size to_message(Size size) {
  v1::Size out;
  out.set_width(size.width);
  out.set_height(size.height);
  return out;
}

Result<Size> from_message(const v1::Size& size) {
  if (has_unknown_fields(size)) return unknown_field(size);
  return Size{.width = size.width(), .height = size.height()};
}

v1::Box to_message(const Box& box) {
  v1::Box out;
  out.set_left(box.left);
  out.set_top(box.top);
  out.set_width(box.width);
  out.set_height(box.height);
  return out;
}

Result<Box> from_message(const v1::Box& box) {
  if (has_unknown_fields(box)) return unknown_field(box);
  return Box{.left = box.left(), .top = box.top(), .width = box.width(), .height = box.height()};
}

v1::DType to_message(DType dtype) {
  return message_of(kDTypes, dtype);
}
Result<DType> from_message(std::string_view field, v1::DType dtype) {
  return meaning_of(field, kDTypes, dtype);
}

}  // namespace millrace
