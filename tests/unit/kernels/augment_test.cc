#include <algorithm>
#include <atomic>
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

// Makes them the chains of a sum, but for turns of the size, which may not be in one.
void mix(std::mt19937& random, std::vector<Operation>& operations) {
  const auto weight = [&] { return static_cast<float>(random() % 1001) / 1000.0F; };
  std::vector<Operation> sum{step(Step::kMixStart, weight())};
  for (const Operation& operation : operations) {
    if (operation.step != Step::kQuarterTurns || operation.value % 2 == 0) sum.push_back(operation);
    if (random() % 2 == 0) sum.push_back(step(Step::kMixAdd, weight()));
  }
  sum.push_back(step(Step::kMixAdd, weight()));
  sum.push_back(step(Step::kMixEnd, random() % 2 == 0 ? 1.0F : weight()));
  operations = sum;
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

TEST_CASE("a sum weighs what chains make of the picture, and leaves it to the next one as it was") {
  for (const Target target : available_targets()) {
    Augmenter augmenter(target);
    const Pixels in{200, 100, 50};
    const auto mixed = [&](float of_picture, std::vector<Operation> chains, float share) {
      chains.insert(chains.begin(), step(Step::kMixStart, of_picture));
      chains.push_back(step(Step::kMixEnd, share));
      return augmented(augmenter, in, {1, 1}, chains);
    };
    const Operation invert = step(Step::kInvert), half = step(Step::kMixAdd, 0.5F), whole = step(Step::kMixAdd, 1);
    CHECK(mixed(0.5F, {invert, half}, 1) == Pixels{127, 127, 127});  // 127.5, truncated
    CHECK(mixed(0, {invert, half, half}, 1) == Pixels{127, 127, 127});
    CHECK(mixed(0, {half, invert, half}, 1) == Pixels{127, 127, 127});
    CHECK(mixed(0, {invert, invert, whole}, 1) == in);
    CHECK(mixed(1, {whole}, 1) == Pixels{255, 200, 100});
    CHECK(mixed(0, {invert, whole}, 0.5F) == Pixels{127, 127, 127});
    CHECK(mixed(0, {invert, whole}, 0) == in);
    CHECK(mixed(0, {invert, whole, invert}, 1) ==
          Pixels{55, 155, 205});  // what comes behind the last picture is in none
    CHECK(mixed(0.25F, {step(Step::kSolarize, 100), half, step(Step::kPosterize, 1, 1), step(Step::kMixAdd, 0.25F)},
                1) == Pixels{109, 102, 37});  // 50 + 27.5 + 32, 25 + 77.5 + 0, 12.5 + 25 + 0
  }
}

TEST_CASE("sums follow one another, with steps that move pixels in and between them") {
  const Size size{67, 33};
  const Pixels in = noise(size, 9);
  const Operation turned = affine(Sampling::kBilinear, {0.9, 0.1, 0, -0.1, 0.9, 0}), flip = step(Step::kFlipHorizontal);
  const Operation sharp = step(Step::kSharpness, 2), blur = step(Step::kPillowBlur, 1.5F);
  for (const Target target : available_targets()) {
    Augmenter augmenter(target);
    const auto weighed = [&](const Pixels& picture, std::vector<Operation> first, std::vector<Operation> second) {
      const Pixels a = augmented(augmenter, picture, size, first), b = augmented(augmenter, picture, size, second);
      Pixels sum(picture.size());
      for (std::size_t i = 0; i < sum.size(); ++i) {
        const float all = 0.2F * static_cast<float>(picture[i]) + 0.3F * static_cast<float>(a[i]);
        sum[i] = static_cast<std::uint8_t>(std::min(255.0F, all + 0.5F * static_cast<float>(b[i])));
      }
      return sum;
    };
    const std::vector<Operation> sum{
        step(Step::kMixStart, 0.2F), turned, sharp, step(Step::kMixAdd, 0.3F), flip, blur, step(Step::kMixAdd, 0.5F),
        step(Step::kMixEnd, 1)};
    std::vector<Operation> twice = sum;
    twice.push_back(flip);
    twice.insert(twice.end(), sum.begin(), sum.end());
    const Pixels once = weighed(in, {turned, sharp}, {flip, blur});
    const Pixels flipped = augmented(augmenter, once, size, {flip});
    CHECK(augmented(augmenter, in, size, sum) == once);
    CHECK(augmented(augmenter, in, size, twice) == weighed(flipped, {turned, sharp}, {flip, blur}));
  }
}

TEST_CASE("flips, and steps that map all values alike, are right in place and with gaps between rows") {
  const Operation across = step(Step::kFlipHorizontal), down = step(Step::kFlipVertical), invert = step(Step::kInvert);
  const Operation solarize = step(Step::kSolarize, 90), dark = step(Step::kBrightness, 0.5F);
  for (const Target target : available_targets()) {
    Augmenter augmenter(target);
    for (const Size size :
         {Size{1, 1}, Size{1, 7}, Size{7, 1}, Size{2, 2}, Size{65, 4}, Size{224, 33}, Size{4097, 3}}) {
      const auto width = static_cast<std::size_t>(size.width), height = static_cast<std::size_t>(size.height);
      const std::size_t stride = 3 * width + (size.height % 2 == 1 ? 5 : 0);
      for (const std::vector<Operation>& list : {std::vector{across},
                                                 {down},
                                                 {across, down},
                                                 {down, across, down, across},
                                                 {invert},
                                                 {solarize, dark, invert},
                                                 {across, across, across}}) {
        Pixels pixels = noise({size.width, size.height + 2}, 3);
        pixels.resize(stride * height);
        const Pixels before = pixels;
        TimeLimit limit;
        const auto gap = static_cast<std::ptrdiff_t>(stride);
        REQUIRE(augmenter.apply({pixels.data(), size.width, size.height, 3, gap}, list, limit,
                                {pixels.data(), size.width, size.height, 3, gap}));
        bool turned = false, over = false;
        for (const Operation& operation : list) {
          turned ^= operation.step == Step::kFlipHorizontal;
          over ^= operation.step == Step::kFlipVertical;
        }
        for (std::size_t y = 0; y < height; ++y) {
          for (std::size_t i = 0; i < 3 * width; ++i) {
            const std::size_t x = turned ? width - 1 - i / 3 : i / 3;
            int value = before[(over ? height - 1 - y : y) * stride + 3 * x + i % 3];
            for (const Operation& operation : list) {
              if (operation.step == Step::kBrightness) value /= 2;
              if (operation.step == Step::kInvert || (operation.step == Step::kSolarize && value >= 90))
                value = 255 - value;
            }
            REQUIRE(int{pixels[y * stride + i]} == value);
          }
          for (std::size_t i = 3 * width; i < stride; ++i) REQUIRE(pixels[y * stride + i] == before[y * stride + i]);
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
      if (round % 2 == 0) mix(random, operations);
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
  CHECK_FALSE(is_taken(step(static_cast<Step>(23))));
  Operation erase = step(Step::kErase);
  erase.box = {2, 0, 3, 1};
  CHECK_FALSE(is_taken(erase));
  erase.box = {std::numeric_limits<int>::max(), 0, 1, 1};
  CHECK_FALSE(is_taken(erase));
  CHECK_FALSE(is_valid({0, 1}, {}));
  CHECK_FALSE(is_valid({kLongestSide + 1, 1}, {}));
  CHECK_FALSE(is_valid(size, std::vector<Operation>(kMostOperations + 1)));
}

TEST_CASE("a sum that is not whole, too large, or turns its picture is told apart") {
  const Operation start = step(Step::kMixStart, 0.5F), add = step(Step::kMixAdd, 0.5F), end = step(Step::kMixEnd);
  const auto is_taken = [](std::vector<Operation> operations) { return is_valid({4, 3}, operations); };
  CHECK(is_taken({start, add, end}));
  CHECK(is_taken({start, add, end, start, add, add, end}));
  CHECK_FALSE(is_taken({start, add}));
  CHECK_FALSE(is_taken({start, end}));
  CHECK_FALSE(is_taken({add, end}));
  CHECK_FALSE(is_taken({end}));
  CHECK_FALSE(is_taken({add}));
  CHECK_FALSE(is_taken({start, start, add, end}));
  CHECK(is_taken({start, step(Step::kQuarterTurns, 1, 2), add, end}));
  CHECK_FALSE(is_taken({start, step(Step::kQuarterTurns, 1, 1), add, end}));
  for (const float weight : {-0.1F, 1.1F, std::numeric_limits<float>::quiet_NaN()}) {
    CHECK_FALSE(is_taken({step(Step::kMixStart, weight), add, end}));
    CHECK_FALSE(is_taken({start, step(Step::kMixAdd, weight), end}));
    CHECK_FALSE(is_taken({start, add, step(Step::kMixEnd, weight)}));
  }
  std::vector<Operation> most(kMostMixed + 2, add);
  most.front() = start;
  most.back() = end;
  CHECK(is_taken(most));
  most.insert(most.begin() + 1, add);
  CHECK_FALSE(is_taken(most));
}

TEST_CASE("augmenting ends at its deadline, and once nobody wants it") {
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
    const std::atomic<bool> unwanted{true};
    limit.set({TimeLimit::Clock::time_point::max(), &unwanted});
    CHECK_FALSE(augmenter.apply({in.data(), 512, 512, 3, 1536}, operations, limit, {out.data(), 512, 512, 3, 1536}));
  }
}
