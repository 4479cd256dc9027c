#include "daemon/backend/fpga/worker/batch_plan.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

namespace millrace::fpga {
namespace {

hls::BatchRecipe recipe_of(const FpgaBatch& batch) {
  hls::BatchRecipe recipe{.store = {.dtype = static_cast<kernels::DType>(batch.dtype),
                                    .layout = static_cast<kernels::Layout>(batch.layout),
                                    .channels = static_cast<kernels::ChannelOrder>(batch.channels),
                                    .range = static_cast<kernels::ValueRange>(batch.range)},
                          .filter = static_cast<kernels::Filter>(batch.filter)};
  if (batch.normalise != 0) {
    kernels::Normalise normalise;
    std::copy_n(std::begin(batch.mean), 3, normalise.mean.begin());
    std::copy_n(std::begin(batch.std), 3, normalise.std.begin());
    recipe.store.normalise = normalise;
  }
  return recipe;
}

bool are_alike(const hls::BatchRecipe& a, const hls::BatchRecipe& b) {
  return a.store == b.store && a.filter == b.filter && a.order == b.order;
}

hls::ImageRequest request_of(const FpgaOrder& order, FpgaImage image, std::span<const std::byte> encoded) {
  const auto file = encoded.subspan(order.at, order.bytes);
  return {.file_untrusted = {reinterpret_cast<const std::uint8_t*>(file.data()), file.size()},
          .at = order.at,
          .crop = {order.crop_left, order.crop_top, order.crop_width, order.crop_height},
          .resized = {order.resized_width, order.resized_height},
          .window = {order.window_left, order.window_top, order.window_width, order.window_height},
          .flip = order.flip != 0 ? kernels::Flip::kHorizontal : kernels::Flip::kNone,
          .tensor = order.tensor_at,
          .kind = image == FpgaImage::kPacked ? hls::Source::kPacked : hls::Source::kJpegScan,
          .stored = {static_cast<int>(order.stored_width), static_cast<int>(order.stored_height)}};
}

bool is_within(std::uint64_t at, std::uint64_t bytes, std::uint64_t whole) {
  return at <= whole && bytes <= whole - at;
}

void refuse(FpgaOrder& order, std::string_view why, bool broken) {
  order.verdict = broken ? 2 : 1;
  const std::size_t length = std::min(why.size(), sizeof order.why - 1);
  std::memcpy(order.why, why.data(), length);
  order.why[length] = '\0';
}

std::string_view words_of(hls::Reason reason) {
  switch (reason) {
    case hls::Reason::kDone:
      return "";
    case hls::Reason::kBadDescriptor:
      return "the card found its descriptor wrong";
    case hls::Reason::kNotHere:
      return "the card's kernel makes no such images";
    case hls::Reason::kDamaged:
      return "odd or damaged data";
    case hls::Reason::kExtreme:
      return "coefficients that inverse DCTs do not all do alike";
    case hls::Reason::kTooLong:
      return "more symbols than the image can have";
  }
  return "a reason that is none";
}

}  // namespace

void BatchPlanner::use(const hls::BatchRecipe& recipe) {
  if (planner_ && are_alike(recipe_, recipe)) return;
  planner_ = std::make_unique<hls::Planner>(recipe);
  recipe_ = recipe;
}

Result<BatchPlan> BatchPlanner::plan(const FpgaBatch& batch_untrusted, const FpgaStaging& layout,
                                     std::span<const std::byte> encoded, std::span<FpgaOrder> orders,
                                     std::span<std::byte> commands) {
  const hls::BatchRecipe recipe = recipe_of(batch_untrusted);
  const bool makes_sense = batch_untrusted.images >= 1 && batch_untrusted.images <= orders.size() &&
                           batch_untrusted.encoded_bytes <= layout.encoded_bytes &&
                           batch_untrusted.tensor_bytes <= layout.tensor_bytes && hls::is_possible(recipe);
  if (!makes_sense) return Error{Code::kUnsupported, "a batch that the card's kernels do not make"};
  use(recipe);
  image_ = batch_untrusted.image;
  of_cookie_.clear();
  planner_->begin(commands, batch_untrusted.images);
  const auto used = encoded.first(batch_untrusted.encoded_bytes);
  for (std::size_t i = 0; i < batch_untrusted.images; ++i) {
    FpgaOrder& order = orders[i];
    const bool fits = is_within(order.at, order.bytes, used.size()) &&
                      is_within(order.tensor_at, order.tensor_bytes, batch_untrusted.tensor_bytes);
    const std::string_view why = fits ? planner_->add(request_of(order, image_, used)) : "it lies outside the staging";
    if (why.empty())
      of_cookie_.push_back(i);
    else
      refuse(order, why, why == hls::kBrokenPacked);
  }
  if (planner_->images() == 0) return BatchPlan();
  planner_->finish();
  return BatchPlan{.images = planner_->images(), .command_bytes = planner_->command_bytes()};
}

Result<void> BatchPlanner::judge(std::span<const std::byte> completions, std::uint8_t phase,
                                 std::span<FpgaOrder> orders) {
  outcomes_.resize(of_cookie_.size());
  const std::string_view broken = hls::read_completions(completions, phase, outcomes_);
  if (!broken.empty()) return Error{Code::kUnavailable, "the card answered wrongly: " + std::string(broken)};
  for (std::size_t cookie = 0; cookie < outcomes_.size(); ++cookie) {
    FpgaOrder& order = orders[of_cookie_[cookie]];
    const hls::Reason reason = outcomes_[cookie].reason;
    order.sum = outcomes_[cookie].sum;
    if (reason == hls::Reason::kDone)
      order.verdict = 0;
    else
      refuse(order, words_of(reason), image_ == FpgaImage::kPacked && reason == hls::Reason::kDamaged);
  }
  return {};
}

}  // namespace millrace::fpga
