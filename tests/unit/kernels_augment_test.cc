#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <limits>
#include <random>
#include <vector>

#include "kernels/augment/augment.h"

using namespace millrace::kernels;

namespace {

using Pixels = std::vector<std::uint8_t>;

Pixels noise(Size size, unsigned seed) {
  std::mt19937 random(seed);
  Pixels pixels(static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height) * 3);
  for (std::uint8_t& value : pixels) value = static_cast<std::uint8_t>(random());
  return pixels;
}

Pixels augmented(Augmenter& augmenter, const Pixels& in, Size size, const std::vector<Operation>& operations) {
  REQUIRE(is_valid(size, operations));
  Pixels out(in.size());
  const Size after = size_after(size, operations);
  TimeLimit limit;
  REQUIRE(augmenter.apply({in.data(), size.width, size.height, 3, std::ptrdiff_t{size.width} * 3}, operations, limit,
                          {out.data(), after.width, after.height, 3, std::ptrdiff_t{after.width} * 3}));
  return out;
}

Operation step(Step step, float factor = 1, int value = 0) {
  Operation operation;
  operation.step = step;
  operation.factor = factor;
  operation.value = value;
  return operation;
}

Operation affine(Sampling sampling, const std::array<double, 8>& matrix) {
  Operation operation = step(Step::kAffine);
  operation.sampling = sampling;
  operation.fill = {1, 2, 3};
  operation.matrix = matrix;
  return operation;
}

Operation random_operation(std::mt19937& random, int shorter) {
  auto kind = static_cast<Step>(random() % 20);
  if (kind == Step::kErase) kind = Step::kSharpness;
  Operation operation = step(kind, static_cast<float>(random() % 3000) / 1000.0F);
  operation.value = static_cast<int>(kind == Step::kPosterize ? 1 + random() % 8 : random() % 4);
  if (kind == Step::kHue) operation.value = static_cast<int>(random() % 256);
  if (kind == Step::kSolarize) operation.factor = static_cast<float>(random() % 256);
  if (kind == Step::kGaussianBlur) operation.value = 2 * std::min(operation.value, (shorter - 1)) + 1;
  if (kind == Step::kGaussianBlur || kind == Step::kPillowBlur) operation.factor += 0.01F;
  if (kind == Step::kPillowBlur && random() % 3 == 0) operation.factor *= 30;
  operation.sampling = static_cast<Sampling>(random() % 3);
  operation.matrix = {1.1, 0.2, -3, -0.1, 0.9, 2, 0.001, 0.002};
  return operation;
}

}  // namespace

TEST_CASE("augmenting gives Pillow's values") {
  Augmenter augmenter(Target::kScalar);
  const Pixels colour{200, 100, 50};
  const auto one = [&](const Operation& operation) { return augmented(augmenter, colour, {1, 1}, {operation}); };
  CHECK(one(step(Step::kInvert)) == Pixels{55, 155, 205});
  CHECK(one(step(Step::kPosterize, 1, 3)) == Pixels{192, 96, 32});
  CHECK(one(step(Step::kSolarize, 100)) == Pixels{55, 155, 50});
  CHECK(one(step(Step::kBrightness, 1.4F)) == Pixels{255, 140, 70});
  CHECK(one(step(Step::kContrast, 0.5F)) == Pixels{162, 112, 87});
  CHECK(one(step(Step::kSaturation, 1.7F)) == Pixels{253, 83, 0});
  CHECK(one(step(Step::kSolarizeAdd, 100, 70)) == Pixels{200, 100, 120});
  CHECK(one(step(Step::kSolarizeAdd, 150, -70)) == Pixels{200, 30, 0});
  CHECK(one(step(Step::kSolarizeAdd, 256, 200)) == Pixels{255, 255, 250});
  CHECK(one(step(Step::kGrey)) == Pixels{124, 124, 124});
  CHECK(one(step(Step::kHue, 1, 25)) == Pixels{200, 188, 50});
  for (const Step kind : {Step::kAutocontrast, Step::kEqualize, Step::kSharpness}) CHECK(one(step(kind)) == colour);
}

TEST_CASE("augmenting moves pixels as Pillow does") {
  Augmenter augmenter(best_target());
  const Pixels two{1, 2, 3, 4, 5, 6};
  CHECK(augmented(augmenter, two, {2, 1}, {step(Step::kFlipHorizontal)}) == Pixels{4, 5, 6, 1, 2, 3});
  CHECK(augmented(augmenter, two, {1, 2}, {step(Step::kFlipVertical)}) == Pixels{4, 5, 6, 1, 2, 3});
  CHECK(augmented(augmenter, two, {2, 1}, {step(Step::kQuarterTurns, 1, 1)}) == Pixels{4, 5, 6, 1, 2, 3});
  CHECK(augmented(augmenter, two, {2, 1}, {step(Step::kQuarterTurns, 1, 3)}) == two);
  CHECK(augmented(augmenter, two, {2, 1}, {affine(Sampling::kNearest, {1, 0, 1, 0, 1, 0})}) ==
        Pixels{4, 5, 6, 1, 2, 3});
  Operation erase = step(Step::kErase);
  erase.box = {1, 0, 1, 1};
  erase.fill = {7, 8, 9};
  CHECK(augmented(augmenter, two, {2, 1}, {erase}) == Pixels{1, 2, 3, 7, 8, 9});
}

TEST_CASE("blurs spread a pixel") {
  Augmenter augmenter(best_target());
  Pixels in(75), out(75);
  for (std::size_t c = 0; c < 3; ++c) in[12 * 3 + c] = 255;  // the middle of 5 x 5
  const auto red = [&](const Operation& operation) {
    Pixels values;
    const Pixels blurred = augmented(augmenter, in, {5, 5}, {operation});
    for (std::size_t i = 0; i < blurred.size(); i += 3) values.push_back(blurred[i]);
    return values;
  };
  CHECK(red(step(Step::kGaussianBlur, 1, 1)) == red(step(Step::kPosterize, 1, 8)));
  // Of torchvision.transforms.functional.gaussian_blur(image, 3, 1.0).
  CHECK(red(step(Step::kGaussianBlur, 1, 3)) ==
        Pixels{0, 0, 0, 0, 0, 0, 19, 32, 19, 0, 0, 32, 52, 32, 0, 0, 19, 32, 19, 0, 0, 0, 0, 0, 0});
  // Of PIL.ImageFilter.GaussianBlur(1).
  CHECK(red(step(Step::kPillowBlur, 1)) ==
        Pixels{0, 4, 6, 4, 0, 3, 14, 24, 14, 3, 6, 24, 42, 24, 6, 3, 14, 24, 14, 3, 0, 4, 6, 4, 0});
}

TEST_CASE("bicubic sampling gives Pillow's values") {
  Augmenter augmenter(best_target());
  const Pixels in{0, 10, 20, 90, 80, 70, 255, 200, 100, 30, 60, 90};
  // Of Image.transform((4, 1), AFFINE, (1, 0, 0.3, 0, 1, 0), BICUBIC).
  CHECK(augmented(augmenter, in, {4, 1}, {affine(Sampling::kBicubic, {1, 0, 0.3, 0, 1, 0})}) ==
        Pixels{16, 23, 33, 166, 135, 86, 211, 175, 101, 0, 39, 88});
}

TEST_CASE("a pixel from nowhere is black, as Pillow has it, unless it is the nearest one") {
  Operation nowhere = affine(Sampling::kNearest, {0, 0, 0, 0, 0, 0, -2, 0});  // 0 / 0 for the first pixel
  nowhere.step = Step::kPerspective;
  const Pixels two{10, 20, 30, 40, 50, 60};
  for (const Target target : available_targets()) {
    Augmenter augmenter(target);
    nowhere.sampling = Sampling::kNearest;
    CHECK(augmented(augmenter, two, {2, 1}, {nowhere}) == Pixels{1, 2, 3, 10, 20, 30});
    for (const Sampling sampling : {Sampling::kBilinear, Sampling::kBicubic}) {
      nowhere.sampling = sampling;
      // A cubic dips beside a brighter pixel.
      const Pixels past = sampling == Sampling::kBicubic ? Pixels{0, 0, 0, 6, 16, 26} : Pixels{0, 0, 0, 10, 20, 30};
      CHECK(augmented(augmenter, two, {2, 1}, {nowhere}) == past);
    }
  }
}

TEST_CASE("a move by whole pixels takes pixels themselves, with each sampling") {
  const Pixels in = noise({5, 4}, 3);
  for (const Sampling sampling : {Sampling::kNearest, Sampling::kBilinear, Sampling::kBicubic}) {
    Augmenter augmenter(best_target());
    for (const double x : {0.0, 2.0, -4.0, 5.0, -6.0, 1e9, -1e9}) {
      for (const double y : {0.0, -1.0, 3.0, 4.0, -1e9}) {
        const Pixels out = augmented(augmenter, in, {5, 4}, {affine(sampling, {1, 0, x, 0, 1, y})});
        for (std::size_t i = 0; i < out.size(); ++i) {
          const double from_x = static_cast<double>(i / 3 % 5) + x, from_y = static_cast<double>(i / 15) + y;
          const bool is_inside = from_x >= 0 && from_x < 5 && from_y >= 0 && from_y < 4;
          const std::size_t from = is_inside ? static_cast<std::size_t>(from_y * 15 + from_x * 3) + i % 3 : 0;
          REQUIRE(out[i] == (is_inside ? in[from] : i % 3 + 1));
        }
      }
    }
  }
}

TEST_CASE("augmenting is the same with all instruction sets") {
  std::mt19937 random(5);
  Augmenter reference(Target::kScalar);
  for (const Target target : available_targets()) {
    Augmenter augmenter(target);
    for (int round = 0; round < 600; ++round) {
      constexpr Size kOdd[] = {{1, 1}, {1, 9}, {9, 1}, {3, 5}, {2, 2}, {64, 80}, {96, 128}, {1, 4096}};
      Size size{1 + static_cast<int>(random() % 170), 1 + static_cast<int>(random() % 40)};
      if (round % 3 == 0) size = kOdd[random() % std::size(kOdd)];
      const Pixels in = noise(size, static_cast<unsigned>(random()));
      std::vector<Operation> operations;
      for (unsigned i = random() % 5; i > 0; --i)
        operations.push_back(random_operation(random, std::min(size.width, size.height)));
      REQUIRE(augmented(augmenter, in, size, operations) == augmented(reference, in, size, operations));
    }
  }
}

TEST_CASE("augmentations that make no sense are told apart") {
  const Size size{4, 3};
  const auto is_taken = [&](const Operation& operation) { return is_valid(size, std::vector{operation}); };
  CHECK(is_taken(step(Step::kPosterize, 1, 8)));
  CHECK_FALSE(is_taken(step(Step::kPosterize, 1, 0)));
  CHECK_FALSE(is_taken(step(Step::kPosterize, 1, 9)));
  CHECK_FALSE(is_taken(step(Step::kQuarterTurns, 1, 4)));
  CHECK_FALSE(is_taken(step(Step::kBrightness, std::numeric_limits<float>::quiet_NaN())));
  CHECK_FALSE(is_taken(step(Step::kContrast, std::numeric_limits<float>::infinity())));
  CHECK_FALSE(is_taken(affine(Sampling::kNearest, {std::numeric_limits<double>::quiet_NaN()})));
  CHECK_FALSE(is_taken(affine(Sampling::kNearest, {1e300})));
  CHECK(is_taken(affine(Sampling::kBicubic, {1, 0, 0, 0, 1, 0})));
  CHECK_FALSE(is_taken(affine(static_cast<Sampling>(3), {1, 0, 0, 0, 1, 0})));
  CHECK(is_taken(step(Step::kGaussianBlur, 1, 5)));
  for (const int side : {7, 4, 0, -1, 101, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
    CHECK_FALSE(is_taken(step(Step::kGaussianBlur, 1, side)));
  }
  CHECK(is_valid({100, 100}, std::vector{step(Step::kGaussianBlur, 1, 99)}));
  CHECK_FALSE(is_valid({200, 200}, std::vector{step(Step::kGaussianBlur, 1, 101)}));
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN(), kEndless = std::numeric_limits<float>::infinity();
  for (const float factor : {0.0F, -1.0F, kNone, kEndless, -kEndless, 1e30F}) {
    CHECK_FALSE(is_taken(step(Step::kGaussianBlur, factor, 3)));
    CHECK_FALSE(is_taken(step(Step::kPillowBlur, factor)));
  }
  CHECK(is_taken(step(Step::kPillowBlur, 100)));
  CHECK_FALSE(is_taken(step(Step::kPillowBlur, 100.1F)));
  CHECK(is_taken(step(Step::kSolarizeAdd, 128, -255)));
  for (const int added : {-256, 256, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
    CHECK_FALSE(is_taken(step(Step::kSolarizeAdd, 128, added)));
  }
  for (const float factor : {kNone, kEndless, 1e30F}) CHECK_FALSE(is_taken(step(Step::kSolarizeAdd, factor, 1)));
  CHECK_FALSE(is_taken(step(static_cast<Step>(20))));
  Operation erase = step(Step::kErase);
  erase.box = {2, 0, 3, 1};
  CHECK_FALSE(is_taken(erase));
  erase.box = {std::numeric_limits<int>::max(), 0, 1, 1};
  CHECK_FALSE(is_taken(erase));
  CHECK_FALSE(is_valid({0, 1}, {}));
  CHECK_FALSE(is_valid({kLongestSide + 1, 1}, {}));
  CHECK_FALSE(is_valid(size, std::vector<Operation>(kMostOperations + 1)));
}

TEST_CASE("augmenting ends at its deadline") {
  const Size size{512, 512};
  const Pixels in = noise(size, 1);
  Pixels out(in.size());
  Augmenter augmenter(best_target());
  TimeLimit limit;
  const Operation turned = affine(Sampling::kBicubic, {0.9, 0.1, 0, -0.1, 0.9, 0});
  for (const Operation& slow :
       {step(Step::kHue, 1, 9), step(Step::kGaussianBlur, 2, 23), step(Step::kPillowBlur, 2), turned}) {
    limit.set(TimeLimit::Clock::now() - std::chrono::seconds(1));
    const std::vector<Operation> operations{slow};
    CHECK_FALSE(augmenter.apply({in.data(), 512, 512, 3, 1536}, operations, limit, {out.data(), 512, 512, 3, 1536}));
  }
}
