#include "daemon/backend/cpu/making/augmentation.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "daemon/backend/cpu/decoders/decode.h"
#include "daemon/backend/words.h"
#include "daemon/draw/draw_erasing.h"
#include "daemon/draw/draw_steps.h"
#include "daemon/draw/random.h"
#include "kernels/tensor/element.h"

namespace millrace {
namespace {

// REQUIRES: is_valid() was not content.
Error why_not(Size size, std::span<const kernels::Operation> operations) {
  const std::string image =
      "comes out as " + std::to_string(size.width) + "x" + std::to_string(size.height) + " pixels";
  if (!kernels::is_valid(in_kernels(size), {}))
    return {Code::kInvalid, image + ", and steps are done to images of at most " +
                                std::to_string(kernels::kLongestSide) + " pixels a side and " +
                                std::to_string(kernels::kLargestArea) + " in all: resize it first"};
  const bool is_blur = std::any_of(operations.begin(), operations.end(), [&](const kernels::Operation& operation) {
    return operation.step == kernels::Step::kGaussianBlur && !kernels::is_valid(in_kernels(size), {&operation, 1});
  });
  if (is_blur)
    return {Code::kInvalid, image +
                                ", too few for the recipe's Gaussian blur, which needs sides longer than half its "
                                "kernel: take a smaller kernel, or resize first"};
  return {Code::kInvalid, image +
                              ", of which one of the recipe's transforms makes nothing that can be computed: scale "
                              "or shear it less"};
}

// Both have the steps in the same order, and all parts of a mixture are one stage.
Stage stage_of(kernels::Step step) {
  if (step >= kernels::Step::kMixStart) return Stage::kMix;
  return static_cast<Stage>(static_cast<std::size_t>(Stage::kInvert) + static_cast<std::size_t>(step));
}
static_assert(static_cast<std::size_t>(Stage::kMix) - static_cast<std::size_t>(Stage::kInvert) ==
              static_cast<std::size_t>(kernels::Step::kMixStart));

// Where the tensor's elements lie.
class Elements {
 public:
  Elements(const Recipe& recipe, Size size, MutableByteView tensor)
      : recipe_(recipe), size_(size), channels_(channel_count(recipe.channels)), tensor_(tensor) {}

  std::size_t channels() const { return channels_; }

  // `channel`: red, green, blue, or the only one.
  void write(std::size_t channel, std::size_t x, std::size_t y, float value) {
    const std::uint32_t element = kernels::element_bits(static_cast<kernels::DType>(recipe_.dtype), value);
    const std::size_t bytes = dtype_bytes(recipe_.dtype).count;
    const std::size_t stored = recipe_.channels == Channels::kBgr ? channels_ - 1 - channel : channel;
    const std::size_t pixel = y * size_.width + x;
    const std::size_t at =
        recipe_.layout == Layout::kNhwc ? pixel * channels_ + stored : stored * size_.width * size_.height + pixel;
    std::memcpy(tensor_.data() + at * bytes, &element, bytes);  // the lower ones come first
  }

 private:
  const Recipe& recipe_;
  const Size size_;
  const std::size_t channels_;
  const MutableByteView tensor_;
};

}  // namespace

Recipe before_steps(const Recipe& recipe) {
  return {.ignore_orientation = recipe.ignore_orientation,
          .filter = recipe.filter,
          .layout = Layout::kNhwc,
          .indices = recipe.indices};
}

std::optional<kernels::MutableU8View> StepWorkspace::in(PixelBuffer& buffer, Size size) {
  const auto [width, height] = in_kernels(size);
  const std::ptrdiff_t stride = std::ptrdiff_t{width} * 3;
  std::uint8_t* const memory = buffer.reserve(static_cast<std::size_t>(stride) * static_cast<std::size_t>(height));
  if (memory == nullptr) return std::nullopt;
  return kernels::MutableU8View{memory, width, height, 3, stride};
}

Result<void> StepWorkspace::apply(const Recipe& recipe, const SampleGeometry& geometry, kernels::TimeLimit& limit,
                                  const kernels::MutableU8View& picture) {
  if (recipe.steps.empty()) return {};
  operations_.clear();
  draw_steps(recipe.steps, picture.size(), *geometry.draws, operations_);
  if (operations_.empty()) return {};
  if (!kernels::is_valid(picture.size(), operations_)) return why_not(geometry.output(), operations_);
  if (kernels::size_after(picture.size(), operations_) != picture.size())
    return Error{Code::kInternal, "the recipe's steps change the image's size"};
  try {
    if (!augmenter_) augmenter_.emplace(target_);
    kernels::StepTimes took{};
    const bool is_done = augmenter_->apply(picture, operations_, limit, picture, &took);
    for (const kernels::Operation& operation : operations_) {
      std::chrono::nanoseconds& time = took[static_cast<std::size_t>(operation.step)];
      times_.of(stage_of(operation.step)) += std::exchange(time, {});
    }
    if (!is_done) return deadline_error();
  } catch (const std::bad_alloc&) {
    return memory_error();
  }
  return {};
}

void StepWorkspace::trim() {
  picture_.trim();
  inner_.trim();
  if (augmenter_ && augmenter_->memory() > PixelBuffer::kKept) augmenter_.reset();
}

Result<void> erase(const Recipe& recipe, const SampleGeometry& geometry, kernels::TimeLimit& limit,
                   MutableByteView tensor) {
  const Erasing& erasing = *recipe.erasing;
  const std::vector<Box> boxes = draw_erased(erasing, geometry.output(), *geometry.draws);
  RandomStream noise(*geometry.draws, RandomStream::Use::kNoise);
  Elements elements(recipe, geometry.output(), tensor);
  for (const Box& box : boxes) {
    const auto left = static_cast<std::size_t>(box.left), top = static_cast<std::size_t>(box.top);
    const auto width = static_cast<std::size_t>(box.width), height = static_cast<std::size_t>(box.height);
    for (std::size_t channel = 0; channel < elements.channels(); ++channel) {
      float value = erasing.value[channel];
      if (erasing.noise == Erasing::Noise::kChannel) value = static_cast<float>(noise.normal());
      for (std::size_t y = top; y < top + height; ++y) {
        if (limit.is_over_after(width)) return deadline_error();
        for (std::size_t x = left; x < left + width; ++x) {
          if (erasing.noise == Erasing::Noise::kPixel) value = static_cast<float>(noise.normal());
          elements.write(channel, x, y, value);
        }
      }
    }
  }
  return {};
}

}  // namespace millrace
