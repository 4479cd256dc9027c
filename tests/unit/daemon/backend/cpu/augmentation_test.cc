// Steps of augmentation and erasing in the CPU backend's hands: where in a sample's making they come, for every kind of
// tensor. What each step does to pixels is tests/unit/kernels/augment_test.cc's, what is drawn tests/unit/daemon/draw/steps_test.cc's.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <vector>

#include "daemon/backend/cpu/making/image_maker.h"
#include "daemon/backend/words.h"
#include "daemon/draw/draw_erasing.h"
#include "daemon/draw/draw_steps.h"
#include "daemon/draw/random.h"
#include "kernels/augment/augment.h"
#include "kernels/cpu/store.h"
#include "kernels/cpu/workspace.h"
#include "kernels/tensor/element.h"
#include "tests/conformance/bench_of_backend.h"

namespace millrace {
namespace {

constexpr Size kAugmentedSize{41, 30};
constexpr RandomKey kAugmentedKey{.seed = 5, .epoch = 1, .sample = SampleId{12}};

const std::vector<Step>& some_steps() {
  static const std::vector<Step> kSteps{
      {.kind = steps::Rotation{{10, 20}, {PixelSampling::kBilinear, {9, 8, 7}}}},
      {.kind = steps::ColorJitter{Interval{0.5F, 1.5F}, Interval{0.5F, 1.5F}, {}, Interval{-0.1F, 0.1F}}},
      {.kind = steps::Simple::kVerticalFlip}};
  return kSteps;
}

struct Made {
  SampleOutcome outcome;
  std::vector<std::byte> bytes;
};

Made make(const Recipe& recipe, ImageFormat format = ImageFormat::kPng, Fidelity fidelity = Fidelity::kExact,
          SampleLimits limits = {}, bool flip = false, Size size = kAugmentedSize) {
  EncodedImage image = image_of(format, 60, 50);
  SampleGeometry geometry = resized_whole(image, size);
  geometry.flip = flip;
  if (is_augmented(recipe)) geometry.draws = kAugmentedKey;
  Made made;
  made.bytes.resize(image_bytes(recipe, size).count);
  const SampleTask task{0, std::move(image), geometry, in_host_memory(made.bytes)};
  ImageWorkspace workspace;
  made.outcome = make_image(task, recipe, limits, workspace, fidelity);
  return made;
}

// Without steps, as they take it.
std::vector<std::byte> pixels_of(ImageFormat format, Fidelity fidelity, bool flip) {
  return make({.layout = Layout::kNhwc}, format, fidelity, {}, flip).bytes;
}

// The steps done to a finished picture, which is then stored.
std::vector<std::byte> expected(const Recipe& recipe, std::vector<std::byte> pixels) {
  const kernels::MutableU8View picture{reinterpret_cast<std::uint8_t*>(pixels.data()), kAugmentedSize.width,
                                       kAugmentedSize.height, 3, std::ptrdiff_t{3} * kAugmentedSize.width};
  std::vector<kernels::Operation> operations;
  draw_steps(recipe.steps, picture.size(), kAugmentedKey, operations);
  kernels::TimeLimit limit;
  REQUIRE(kernels::Augmenter(kernels::Target::kScalar).apply(picture, operations, limit, picture));
  std::vector<std::byte> tensor(image_bytes(recipe, kAugmentedSize).count);
  kernels::Workspace workspace(kernels::Target::kScalar);
  const kernels::StoreTable table(store_spec(recipe));
  kernels::ImageStore store(table, tensor, picture.size(), 3, kernels::Flip::kNone, workspace);
  for (int y = 0; y < picture.height; ++y) store(y, picture.row(y));
  return tensor;
}

float as_float(DType dtype, const std::byte* element) {
  std::uint16_t half = 0;
  float value = 0;
  switch (dtype) {
    case DType::kUint8:
      return static_cast<float>(std::to_integer<int>(*element));
    case DType::kFloat32:
      std::memcpy(&value, element, sizeof value);
      return value;
    default:
      std::memcpy(&half, element, sizeof half);
      return half;  // bits: compared, not computed with
  }
}

float bits_of(DType dtype, float value) {
  if (dtype == DType::kFloat16) return kernels::to_float16(value);
  if (dtype == DType::kBfloat16) return kernels::to_bfloat16(value);
  return value;
}

}  // namespace

TEST_CASE("steps are done to the flipped RGB picture, and what they leave is stored as the recipe says", "[backend]") {
  const auto format = GENERATE(ImageFormat::kPng, ImageFormat::kJpeg);
  const auto fidelity = GENERATE(Fidelity::kExact, Fidelity::kFast);
  const auto channels = GENERATE(Channels::kRgb, Channels::kBgr, Channels::kGrey);
  const auto dtype = GENERATE(DType::kUint8, DType::kFloat16, DType::kFloat32);
  const auto layout = GENERATE(Layout::kNchw, Layout::kNhwc);
  const bool flip = GENERATE(false, true);
  Recipe recipe{.dtype = dtype, .layout = layout, .channels = channels, .steps = some_steps()};
  if (dtype != DType::kUint8) recipe.normalise = Normalise{};

  const Made made = make(recipe, format, fidelity, {}, flip);

  REQUIRE_FALSE(made.outcome.error);
  CHECK(made.bytes == expected(recipe, pixels_of(format, fidelity, flip)));
}

TEST_CASE("patches are cut out of what the steps leave", "[backend]") {
  const Size size{28, 42};
  const Recipe plain{.steps = some_steps()};
  Recipe recipe = plain;
  recipe.patches = Patches{{14, 14}};

  const Made whole = make(plain, ImageFormat::kPng, Fidelity::kExact, {}, false, size);
  const Made cut = make(recipe, ImageFormat::kPng, Fidelity::kExact, {}, false, size);

  REQUIRE_FALSE(cut.outcome.error);
  const auto at = [&](std::size_t channel, std::size_t y, std::size_t x) {
    return whole.bytes[(channel * size.height + y) * size.width + x];
  };
  std::size_t i = 0;
  for (std::size_t patch = 0; patch < 6; ++patch) {
    for (std::size_t element = 0; element < 3 * 14 * 14; ++element, ++i) {
      const std::size_t channel = element / 196, y = element % 196 / 14, x = element % 14;
      REQUIRE(cut.bytes[i] == at(channel, patch / 2 * 14 + y, patch % 2 * 14 + x));
    }
  }
}

TEST_CASE("an erased rectangle is overwritten in the finished tensor, and nothing else is", "[backend]") {
  const auto channels = GENERATE(Channels::kRgb, Channels::kBgr, Channels::kGrey);
  const auto dtype = GENERATE(DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32);
  const auto layout = GENERATE(Layout::kNchw, Layout::kNhwc);
  const auto noise = GENERATE(Erasing::Noise::kNone, Erasing::Noise::kChannel, Erasing::Noise::kPixel);
  if (dtype == DType::kUint8 && noise != Erasing::Noise::kNone) return;
  const Recipe plain{.dtype = dtype, .layout = layout, .channels = channels};
  Recipe recipe = plain;
  recipe.erasing = Erasing{.probability = 1, .scale = {0.2F, 0.4F}, .value = {3, 5, 7}, .noise = noise};
  const std::vector<Box> boxes = draw_erased(*recipe.erasing, kAugmentedSize, kAugmentedKey);
  REQUIRE(boxes.size() == 1);
  const Box* const box = boxes.data();
  REQUIRE(box);

  const Made before = make(plain), after = make(recipe);

  REQUIRE_FALSE(after.outcome.error);
  RandomStream stream(kAugmentedKey, RandomStream::Use::kNoise);
  const std::size_t count = channel_count(channels), element = dtype_bytes(dtype).count;
  for (std::size_t channel = 0; channel < count; ++channel) {
    const std::size_t stored = channels == Channels::kBgr ? 2 - channel : channel;
    float value = recipe.erasing->value[channel];
    if (noise == Erasing::Noise::kChannel) value = static_cast<float>(stream.normal());
    for (int y = 0; y < static_cast<int>(kAugmentedSize.height); ++y) {
      for (int x = 0; x < static_cast<int>(kAugmentedSize.width); ++x) {
        const std::size_t pixel = static_cast<std::size_t>(y) * kAugmentedSize.width + static_cast<std::size_t>(x);
        const std::size_t at =
            (layout == Layout::kNhwc ? pixel * count + stored
                                     : stored * kAugmentedSize.width * kAugmentedSize.height + pixel) *
            element;
        const bool inside = x >= box->left && x < box->left + box->width && y >= box->top && y < box->top + box->height;
        if (inside && noise == Erasing::Noise::kPixel) value = static_cast<float>(stream.normal());
        const float wanted = inside ? bits_of(dtype, value) : as_float(dtype, &before.bytes[at]);
        REQUIRE(as_float(dtype, &after.bytes[at]) == wanted);
      }
    }
  }
}

// Or others would not be asked to share a lane with it fairly.
TEST_CASE("what erasing takes is told, by whatever way the image is made", "[backend]") {
  const auto told = [](const Recipe& recipe) {
    const Made made = make(recipe, ImageFormat::kPng, Fidelity::kExact, {}, false, {900, 900});
    REQUIRE_FALSE(made.outcome.error);
    return made.outcome.decode + made.outcome.transform;
  };
  Recipe recipe{.dtype = DType::kFloat32};
  auto plain = told(recipe);
  for (int i = 0; i < 4; ++i) plain = std::min(plain, told(recipe));
  recipe.erasing = Erasing{.probability = 1, .scale = {0.8F, 0.9F}, .ratio = {1, 1}, .noise = Erasing::Noise::kPixel};

  CHECK(told(recipe) > 2 * plain);  // two million random numbers, which take ten times as long as the image
}

TEST_CASE("an image too small for a step is that sample's error", "[backend]") {
  const Recipe recipe{.steps = {{.kind = steps::GaussianBlur{.kernel_size = 99, .sigma = {1, 1}}}}};

  const Made made = make(recipe);

  REQUIRE(made.outcome.error);
  CHECK(made.outcome.error->code == Code::kInvalid);
  CHECK_THAT(made.outcome.error->message,
             Catch::Contains("comes out as 41x30 pixels, too few for the recipe's Gaussian blur"));
}

TEST_CASE("the time limit of an image holds while steps are done", "[backend]") {
  const Recipe recipe{.steps = std::vector<Step>(40, {.kind = steps::GaussianBlur{99, {20, 20}}})};
  SampleLimits limits;
  limits.time = std::chrono::milliseconds(50);

  const Made made = make(recipe, ImageFormat::kPng, Fidelity::kExact, limits, false, {1'500, 1'500});

  REQUIRE(made.outcome.error);
  CHECK(made.outcome.error->code == Code::kDeadline);
}

TEST_CASE("a recipe with steps and nothing to draw from is our own fault, and no sample's pixels", "[backend]") {
  EncodedImage image = image_of(ImageFormat::kPng, 60, 50);
  const SampleGeometry geometry = resized_whole(image, kAugmentedSize);
  const Recipe recipe{.steps = some_steps()};
  std::vector<std::byte> bytes(image_bytes(recipe, kAugmentedSize).count);
  const SampleTask task{0, std::move(image), geometry, in_host_memory(bytes)};
  ImageWorkspace workspace;

  const SampleOutcome outcome = make_image(task, recipe, {}, workspace);

  REQUIRE(outcome.error);
  CHECK(outcome.error->code == Code::kInternal);
}

}  // namespace millrace
