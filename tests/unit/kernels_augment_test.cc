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

Operation random_operation(std::mt19937& random) {
  const auto kind = static_cast<Step>(random() % 16);  // all but kErase
  Operation operation = step(kind, static_cast<float>(random() % 3000) / 1000.0F);
  operation.value = static_cast<int>(kind == Step::kPosterize ? 1 + random() % 8 : random() % 4);
  if (kind == Step::kHue) operation.value = static_cast<int>(random() % 256);
  if (kind == Step::kSolarize) operation.factor = static_cast<float>(random() % 256);
  operation.sampling = static_cast<Sampling>(random() % 2);
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

TEST_CASE("augmenting is the same with all instruction sets") {
  std::mt19937 random(5);
  Augmenter reference(Target::kScalar);
  for (const Target target : available_targets()) {
    Augmenter augmenter(target);
    for (int round = 0; round < 300; ++round) {
      const Size size{1 + static_cast<int>(random() % 70), 1 + static_cast<int>(random() % 40)};
      const Pixels in = noise(size, static_cast<unsigned>(random()));
      std::vector<Operation> operations;
      for (unsigned i = random() % 5; i > 0; --i) operations.push_back(random_operation(random));
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
  CHECK_FALSE(is_taken(step(static_cast<Step>(17))));
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
  limit.set(TimeLimit::Clock::now() - std::chrono::seconds(1));
  const std::vector<Operation> operations{step(Step::kHue, 1, 9)};
  CHECK_FALSE(augmenter.apply({in.data(), 512, 512, 3, 1536}, operations, limit, {out.data(), 512, 512, 3, 1536}));
}
