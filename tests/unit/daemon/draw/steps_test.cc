#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/draw/draw_erasing.h"
#include "daemon/draw/draw_steps.h"
#include "daemon/draw/random.h"
#include "kernels/augment/named_operation.h"

namespace millrace {
namespace {

using kernels::Operation;
using By = kernels::Sampling;
using To = kernels::Step;

constexpr kernels::Size kSize{97, 64};
constexpr RandomKey kNear{42, 7, SampleId{3}};
constexpr RandomKey kFar{std::numeric_limits<std::uint64_t>::max(), (1ULL << 33U) + 1, SampleId{(1ULL << 40U) + 5}};
constexpr Fill kFill{1, 2, 3};
constexpr Surroundings kAround{.sampling = PixelSampling::kBilinear, .fill = kFill};

Operation by_both(To step, float factor, int value) {
  Operation operation;
  operation.step = step;
  operation.factor = factor;
  operation.value = value;
  return operation;
}

Operation simple(To step) {
  return by_both(step, 1, 0);
}

Operation by_factor(To step, float factor) {
  return by_both(step, factor, 0);
}

Operation by_value(To step, int value) {
  return by_both(step, 1, value);
}

Operation moved(To step, By sampling, const std::array<double, 8>& matrix) {
  Operation operation = simple(step);
  operation.sampling = sampling;
  operation.fill = kFill;
  operation.matrix = matrix;
  return operation;
}

// But for the last places, which a library's sine or logarithm may decide.
void require_equal(double drawn, double expected) {
  REQUIRE(std::abs(drawn - expected) <= 1e-6 * std::max(1.0, std::abs(expected)));
}

bool has_factor(To step) {
  for (const To one : {To::kSolarize, To::kBrightness, To::kContrast, To::kSaturation, To::kSharpness,
                       To::kGaussianBlur, To::kPillowBlur, To::kSolarizeAdd, To::kMixStart, To::kMixAdd, To::kMixEnd}) {
    if (step == one) return true;
  }
  return false;
}

bool has_value(To step) {
  return step == To::kPosterize || step == To::kHue || step == To::kGaussianBlur || step == To::kSolarizeAdd;
}

void require_draws(const std::vector<Step>& steps, RandomKey key, const std::vector<Operation>& expected) {
  std::vector<Operation> operations;
  draw_steps(steps, kSize, key, operations);
  CAPTURE(key.seed, static_cast<std::uint64_t>(key.sample));
  REQUIRE(operations.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    REQUIRE(operations[i].step == expected[i].step);
    if (has_value(expected[i].step)) REQUIRE(operations[i].value == expected[i].value);
    if (has_factor(expected[i].step)) require_equal(operations[i].factor, expected[i].factor);
    if (expected[i].step != To::kAffine && expected[i].step != To::kPerspective) continue;
    REQUIRE(operations[i].sampling == expected[i].sampling);
    REQUIRE(operations[i].fill == expected[i].fill);
    for (std::size_t k = 0; k < 8; ++k) require_equal(operations[i].matrix[k], expected[i].matrix[k]);
  }
}

const steps::ColorJitter kJitter{Interval{0.6F, 1.4F}, Interval{0.6F, 1.4F}, Interval{0.6F, 1.4F},
                                 Interval{-0.1F, 0.1F}};
const steps::Affine kAffine{{-20, 20}, 0.1F, 0.3F, {0.7F, 1.4F}, {-10, 10}, {-5, 5}, kAround};
const steps::TimmRandAugment kTimm{.operations = 16, .fill = kFill};
const steps::TimmRandAugment kTimmOther{12, 4.5F, 3, 0.7F, false, kFill, PixelSampling::kBilinear};
// In nested braces a compiler tries each element as each kind of step: six seconds for a group in a group.
template <class... Kinds>
std::vector<Step> all_of(Kinds... kinds) {
  std::vector<Step> steps;
  (steps.push_back({.kind = std::move(kinds)}), ...);
  return steps;
}

Step nested() {
  steps::OneOf one{.weights = {0.5F, 0, 0.5F}};
  one.steps = all_of(steps::Sharpness{{0, 2}}, steps::Simple::kGrayscale, steps::Simple::kVerticalFlip);
  steps::Sequence both;
  both.steps = all_of(steps::Posterize{3}, std::move(one));
  both.steps[0].probability = 0.5F;
  return {.probability = 0.9F, .kind = std::move(both)};
}

Step mixed() {
  steps::OneOf one;
  one.steps = all_of(steps::Simple::kEqualize, steps::Simple::kAutoContrast, steps::PillowBlur{{1, 2}});
  steps::AnyOrder all;
  all.steps = all_of(steps::Solarize{90}, steps::Simple::kInvert, steps::Simple::kHorizontalFlip, std::move(one));
  all.steps[1].probability = 0.5F;
  return {.kind = std::move(all)};
}

const Step kNested = nested(), kMixed = mixed();
const Step kLast{.kind = steps::Sharpness{{0, 3}}};

// What is expected comes from a second implementation, in Python (tests/support/draws.py), and the libraries' own
// arithmetic. A change of any of it breaks the resumption of epochs.

TEST_CASE("steps of one parameter draw what they drew", "[draw]") {
  require_draws({{.kind = steps::Sharpness{{0, 3}}}}, kNear, {by_factor(To::kSharpness, 0.273101836F)});
  require_draws({{.kind = steps::Sharpness{{0, 3}}}}, kFar, {by_factor(To::kSharpness, 2.95153809F)});
  require_draws({{.kind = steps::GaussianBlur{9, {0.1F, 2}}}}, kNear, {by_both(To::kGaussianBlur, 0.272964507F, 9)});
  require_draws({{.kind = steps::PillowBlur{{0.1F, 2}}}}, kFar, {by_factor(To::kPillowBlur, 1.96930742F)});
  require_draws(
      {{.kind = steps::Rotation{{-30, 30}, kAround}}}, kNear,
      {moved(To::kAffine, By::kBilinear,
             {0.909686303993, 0.415296073095, -8.90926008269, -0.415296073095, 0.909686303993, 23.0318978173})});
  require_draws(
      {{.kind = steps::Rotation{{-30, 30}, kAround}}}, kFar,
      {moved(To::kAffine, By::kBilinear,
             {0.874359294562, -0.485279119697, 21.6225060441, 0.485279119697, 0.874359294562, -19.5155347313})});
}

TEST_CASE("a colour jitter's order and factors stay what they were", "[draw]") {
  require_draws({{.kind = kJitter}}, kNear,
                {by_factor(To::kContrast, 1.39220798F), by_value(To::kHue, 11), by_factor(To::kSaturation, 1.15328145F),
                 by_factor(To::kBrightness, 1.16203427F)});
  require_draws({{.kind = kJitter}}, kFar,
                {by_factor(To::kSaturation, 1.19181716F), by_factor(To::kBrightness, 0.836589396F),
                 by_factor(To::kContrast, 1.16930532F), by_value(To::kHue, 20)});
  require_draws({{.kind = steps::ColorJitter{.contrast = Interval{0, 2}, .hue = Interval{-0.5F, 0.5F}}}}, kFar,
                {by_factor(To::kContrast, 0.59147346F), by_value(To::kHue, 53)});
}

TEST_CASE("an affine transform's parameters stay what they were", "[draw]") {
  require_draws(
      {{.kind = kAffine}}, kNear,
      {moved(To::kAffine, By::kBilinear,
             {1.10990628831, -0.146518071438, -0.180280977597, 0.297557297608, 1.06804605681, -3.19733547488})});
  require_draws({{.kind = kAffine}}, kFar,
                {moved(To::kAffine, By::kBilinear,
                       {1.09197824133, 0.229703413749, -11.9810704266, -0.42323459148, 1.01518976552, 3.54325493308})});
}

TEST_CASE("a perspective's corners stay what they were", "[draw]") {
  require_draws({{.kind = steps::Perspective{0.5F, kAround}}}, kNear,
                {moved(To::kPerspective, By::kBilinear,
                       {1.12025928497, -0.155591577291, 0.248946517706, 0.102106966078, 1.73581850529, -27.9773101807,
                        -1.26399804703e-18, -3.06089351386e-17})});
  require_draws({{.kind = steps::Perspective{0.5F, kAround}}}, kFar,
                {moved(To::kPerspective, By::kBilinear,
                       {1.70944917202, 0.675828754902, -46.4334106445, 0.0777005627751, 1.65761196613, -15.12570858,
                        0.00123334222008, 0.0019957984332})});
}

TEST_CASE("RandAugment's operations stay what they were", "[draw]") {
  require_draws(
      {{.kind = steps::RandAugment{16, 9, 31, kAround}}}, kNear,
      {moved(To::kAffine, By::kBilinear, {1, -0.0900000035763, 0, -0, 1, 0}),
       moved(To::kAffine, By::kBilinear,
             {0.987688340595, 0.15643446504, -4.40878740015, -0.15643446504, 0.987688340595, 7.98104465541}),
       moved(To::kAffine, By::kBilinear, {1, 0, 0, -0.0900000035763, 1, 0}),
       moved(To::kAffine, By::kBilinear, {1, 0, 0, -0, 1, 8}), simple(To::kEqualize), by_value(To::kPosterize, 7),
       moved(To::kAffine, By::kBilinear,
             {0.987688340595, -0.15643446504, 5.60301836242, 0.15643446504, 0.987688340595, -7.1930984535}),
       by_factor(To::kSharpness, 1.26999998F), by_value(To::kPosterize, 7),
       moved(To::kAffine, By::kBilinear,
             {0.987688340595, -0.15643446504, 5.60301836242, 0.15643446504, 0.987688340595, -7.1930984535}),
       by_factor(To::kSaturation, 0.730000019F), by_factor(To::kBrightness, 0.730000019F),
       by_factor(To::kContrast, 0.730000019F),
       moved(To::kAffine, By::kBilinear,
             {0.987688340595, 0.15643446504, -4.40878740015, -0.15643446504, 0.987688340595, 7.98104465541}),
       moved(To::kAffine, By::kBilinear, {1, 0, 0, 0.0900000035763, 1, 0})});
  require_draws(
      {{.kind = steps::RandAugment{16, 4, 10, kAround}}}, kFar,
      {simple(To::kEqualize), by_factor(To::kBrightness, 1.39999998F),
       moved(To::kAffine, By::kBilinear, {1, 0, 0, -0, 1, 12}), by_factor(To::kSharpness, 1.39999998F),
       by_value(To::kPosterize, 6), moved(To::kAffine, By::kBilinear, {1, -0.133333340287, 0, -0, 1, 0}),
       moved(To::kAffine, By::kBilinear, {1, 0, 0, -0.133333340287, 1, 0}),
       moved(To::kAffine, By::kBilinear, {1, 0, 0, -0, 1, -12}), simple(To::kAutocontrast),
       moved(To::kAffine, By::kBilinear, {1, 0, -19, -0, 1, 0}), by_factor(To::kBrightness, 0.600000024F),
       moved(To::kAffine, By::kBilinear, {1, 0, 0, -0.133333340287, 1, 0}),
       moved(To::kAffine, By::kBilinear,
             {0.973044871859, -0.230615865344, 8.68703140582, 0.230615865344, 0.973044871859, -10.3223053687}),
       by_factor(To::kSolarize, 141.666672F), by_factor(To::kSharpness, 0.600000024F)});
}

TEST_CASE("TrivialAugmentWide's operation stays what they were", "[draw]") {
  require_draws({{.kind = steps::TrivialAugmentWide{31, kAround}}}, RandomKey{42, 7, SampleId{0}},
                {by_factor(To::kSaturation, 0.934000015F)});
  require_draws({{.kind = steps::TrivialAugmentWide{31, kAround}}}, RandomKey{42, 7, SampleId{1}},
                {by_factor(To::kSolarize, 59.5F)});
  require_draws({{.kind = steps::TrivialAugmentWide{31, kAround}}}, RandomKey{42, 7, SampleId{2}},
                {by_value(To::kPosterize, 6)});
  require_draws({{.kind = steps::TrivialAugmentWide{31, kAround}}}, RandomKey{42, 7, SampleId{3}},
                {moved(To::kAffine, By::kBilinear, {1, 0.957000017166, 0, -0, 1, 0})});
  require_draws({{.kind = steps::TrivialAugmentWide{31, kAround}}}, RandomKey{42, 7, SampleId{4}},
                {simple(To::kAutocontrast)});
  require_draws({{.kind = steps::TrivialAugmentWide{31, kAround}}}, RandomKey{42, 7, SampleId{5}},
                {moved(To::kAffine, By::kBilinear, {1, 0.990000009537, 0, -0, 1, 0})});
  require_draws({{.kind = steps::TrivialAugmentWide{31, kAround}}}, RandomKey{42, 7, SampleId{6}},
                {by_factor(To::kSharpness, 1.62699997F)});
  require_draws({{.kind = steps::TrivialAugmentWide{31, kAround}}}, RandomKey{42, 7, SampleId{7}},
                {by_factor(To::kContrast, 1.95700002F)});
}

TEST_CASE("AutoAugment's pairs stay what they were", "[draw]") {
  require_draws({{.kind = steps::AutoAugment{steps::AugmentPolicy::kImageNet, kAround}}}, RandomKey{42, 7, SampleId{0}},
                {simple(To::kInvert), simple(To::kEqualize)});
  require_draws({{.kind = steps::AutoAugment{steps::AugmentPolicy::kImageNet, kAround}}}, RandomKey{42, 7, SampleId{1}},
                {});
  require_draws({{.kind = steps::AutoAugment{steps::AugmentPolicy::kImageNet, kAround}}}, RandomKey{42, 7, SampleId{2}},
                {moved(To::kAffine, By::kBilinear, {1, -0.166666671634, 0, -0, 1, 0}), simple(To::kEqualize)});
  require_draws({{.kind = steps::AutoAugment{steps::AugmentPolicy::kImageNet, kAround}}}, RandomKey{42, 7, SampleId{3}},
                {});
  require_draws({{.kind = steps::AutoAugment{steps::AugmentPolicy::kImageNet, kAround}}}, RandomKey{42, 7, SampleId{4}},
                {by_factor(To::kSolarize, 113.333336F), simple(To::kAutocontrast)});
  require_draws({{.kind = steps::AutoAugment{steps::AugmentPolicy::kCifar10, kAround}}}, RandomKey{42, 7, SampleId{0}},
                {by_factor(To::kBrightness, 1.60000002F)});
  require_draws({{.kind = steps::AutoAugment{steps::AugmentPolicy::kCifar10, kAround}}}, RandomKey{42, 7, SampleId{1}},
                {});
  require_draws({{.kind = steps::AutoAugment{steps::AugmentPolicy::kCifar10, kAround}}}, RandomKey{42, 7, SampleId{2}},
                {simple(To::kAutocontrast)});
  require_draws({{.kind = steps::AutoAugment{steps::AugmentPolicy::kCifar10, kAround}}}, RandomKey{42, 7, SampleId{3}},
                {by_factor(To::kSharpness, 1.29999995F)});
  require_draws({{.kind = steps::AutoAugment{steps::AugmentPolicy::kCifar10, kAround}}}, RandomKey{42, 7, SampleId{4}},
                {moved(To::kAffine, By::kBilinear, {1, 0, 0, -0, 1, -29})});
  require_draws({{.kind = steps::AutoAugment{steps::AugmentPolicy::kSvhn, kAround}}}, RandomKey{42, 7, SampleId{0}},
                {simple(To::kInvert), simple(To::kEqualize)});
  require_draws({{.kind = steps::AutoAugment{steps::AugmentPolicy::kSvhn, kAround}}}, RandomKey{42, 7, SampleId{1}},
                {});
  require_draws({{.kind = steps::AutoAugment{steps::AugmentPolicy::kSvhn, kAround}}}, RandomKey{42, 7, SampleId{2}},
                {moved(To::kAffine, By::kBilinear, {1, 0, 14, -0, 1, 0})});
  require_draws({{.kind = steps::AutoAugment{steps::AugmentPolicy::kSvhn, kAround}}}, RandomKey{42, 7, SampleId{3}},
                {});
  require_draws({{.kind = steps::AutoAugment{steps::AugmentPolicy::kSvhn, kAround}}}, RandomKey{42, 7, SampleId{4}},
                {moved(To::kAffine, By::kBilinear, {1, 0, 0, 0.133333340287, 1, 0})});
}

TEST_CASE("timm's RandAugment's operations stay what they were", "[draw]") {
  require_draws(
      {{.kind = kTimm}}, kNear,
      {moved(To::kAffine, By::kBicubic, {1, 0.269726277942, 0, 0, 1, 0}), by_value(To::kPosterize, 1),
       by_factor(To::kContrast, 1.82670903F), by_both(To::kSolarizeAdd, 128.0F, 97),
       moved(To::kAffine, By::kBicubic,
             {0.912893197211, -0.408198493977, 17.2870317425, 0.408198493977, 0.912893197211, -17.0102092687}),
       by_factor(To::kSaturation, 1.78793705F)});
  require_draws(
      {{.kind = kTimmOther}}, kFar,
      {moved(To::kAffine, By::kBilinear, {1, 0, 0, 0, 1, 11.2326707679}),
       moved(To::kAffine, By::kBilinear, {1, 0, -30.4010745459, 0, 1, 0}), by_both(To::kSolarizeAdd, 128.0F, 93),
       by_both(To::kSolarizeAdd, 128.0F, 58), moved(To::kAffine, By::kBilinear, {1, 0, 0, 0, 1, 0}),
       by_factor(To::kBrightness, 0.477291286F), moved(To::kAffine, By::kBilinear, {1, 0, 0, 0, 1, -8.36972688106}),
       simple(To::kEqualize), simple(To::kInvert)});
}

TEST_CASE("AugMix's chains and weights stay what they were", "[draw]") {
  const auto named = [](const char* name, double magnitude) {
    return *kernels::named_operation(name, magnitude, kSize, By::kBilinear, kFill);
  };
  const auto sheared_y = [](By sampling, double share) { return moved(To::kAffine, sampling, {1, 0, 0, share, 1, 0}); };
  require_draws({{.kind = steps::AugMix{.around = kAround}}}, kNear,
                {by_factor(To::kMixStart, 0.220672533F), named("TranslateY", 0), named("TranslateX", 0),
                 by_factor(To::kMixAdd, 0.323160738F), simple(To::kAutocontrast), named("Rotate", -6.6666665077),
                 by_factor(To::kMixAdd, 0.0284120794F), by_factor(To::kSaturation, 1), simple(To::kAutocontrast),
                 by_value(To::kPosterize, 4), by_factor(To::kMixAdd, 0.427754641F), by_factor(To::kMixEnd, 1)});
  require_draws(
      {{.kind = steps::AugMix{.severity = 10, .width = 2, .depth = 4, .alpha = 0.5F, .around = kAround}}}, kFar,
      {by_factor(To::kMixStart, 0.0664301068F), by_value(To::kPosterize, 1), by_factor(To::kSharpness, 1.2F),
       named("TranslateX", -10.7777776718), named("ShearX", -0.1666666716), by_factor(To::kMixAdd, 0.198928341F),
       by_factor(To::kSaturation, 0.5F), by_factor(To::kContrast, 0.1F), simple(To::kEqualize),
       by_value(To::kPosterize, 3), by_factor(To::kMixAdd, 0.734641552F), by_factor(To::kMixEnd, 1)});
  require_draws(
      {{.kind = steps::TimmAugMix{.fill = kFill}}}, kNear,
      {by_factor(To::kMixStart, 0), by_factor(To::kBrightness, 0.933661577F), simple(To::kAutocontrast),
       by_factor(To::kMixAdd, 0.414666176F), by_factor(To::kSolarize, 203), sheared_y(By::kBicubic, -0.00275371452),
       by_factor(To::kMixAdd, 0.0364571773F), by_factor(To::kSaturation, 0.996454602F),
       moved(To::kAffine, By::kBicubic, {1, 0.0483500868, 0, 0, 1, 0}), by_factor(To::kMixAdd, 0.548876643F),
       by_factor(To::kMixEnd, 0.779327452F)});
  require_draws({{.kind = steps::TimmAugMix{8, 1.5F, 2, 3, 4, kFill, PixelSampling::kBilinear}}}, kFar,
                {by_factor(To::kMixStart, 0), sheared_y(By::kBilinear, 0.22741401), sheared_y(By::kBilinear, -0.282354),
                 by_factor(To::kSharpness, 1.46856787F), by_factor(To::kMixAdd, 0.537573993F),
                 named("Rotate", -19.1007341163), sheared_y(By::kBilinear, -0.299120714), simple(To::kAutocontrast),
                 by_factor(To::kMixAdd, 0.462426007F), by_factor(To::kMixEnd, 0.760960281F)});
}

TEST_CASE("AugMix's weights are of Dirichlet's distribution", "[draw]") {
  for (const float alpha : {0.1F, 1.0F, 4.0F}) {
    CAPTURE(alpha);
    constexpr int kDraws = 4000;
    double sum = 0, squares = 0;
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      std::vector<Operation> operations;
      draw_steps({{{.kind = steps::AugMix{.width = 3, .depth = 1, .alpha = alpha}}}}, kSize, {5, 1, SampleId{i}},
                 operations);
      REQUIRE(operations.size() == 8);
      double of_chains = 0;
      for (const std::size_t at : {2U, 4U, 6U}) of_chains += static_cast<double>(operations[at].factor);
      const auto of_image = static_cast<double>(operations.front().factor);
      REQUIRE(std::abs(of_image + of_chains - 1) < 1e-6);
      const double first = of_chains > 0 ? static_cast<double>(operations[2].factor) / of_chains : 0;
      sum += first;
      squares += first * first;
    }
    // The mean of three is a third; the variance 2 / (9 (3 alpha + 1)).
    const double mean = sum / kDraws, variance = squares / kDraws - mean * mean;
    CHECK(std::abs(mean - 1.0 / 3) < 0.03);
    CHECK(std::abs(variance - 2 / (9 * (3 * static_cast<double>(alpha) + 1))) < 0.015);
  }
}

TEST_CASE("groups: their choice, and the numbers of the steps in them, stay what they were", "[draw]") {
  require_draws({kNested, kMixed, kLast}, RandomKey{42, 7, SampleId{0}},
                {by_factor(To::kSharpness, 1.00904369F), by_factor(To::kPillowBlur, 1.8986237F),
                 by_factor(To::kSolarize, 90.0F), simple(To::kFlipHorizontal), by_factor(To::kSharpness, 1.15677345F)});
  require_draws(
      {kNested, kMixed, kLast}, RandomKey{42, 7, SampleId{1}},
      {by_value(To::kPosterize, 3), by_factor(To::kSharpness, 1.02283716F), by_factor(To::kPillowBlur, 1.26607978F),
       by_factor(To::kSolarize, 90.0F), simple(To::kFlipHorizontal), by_factor(To::kSharpness, 1.21636856F)});
  require_draws({kNested, kMixed, kLast}, RandomKey{42, 7, SampleId{2}},
                {by_value(To::kPosterize, 3), by_factor(To::kSharpness, 0.793165326F), simple(To::kAutocontrast),
                 simple(To::kFlipHorizontal), simple(To::kInvert), by_factor(To::kSolarize, 90.0F),
                 by_factor(To::kSharpness, 1.41315901F)});
  require_draws({kNested, kMixed, kLast}, RandomKey{42, 7, SampleId{3}},
                {simple(To::kFlipVertical), simple(To::kFlipHorizontal), simple(To::kAutocontrast),
                 by_factor(To::kSolarize, 90.0F), simple(To::kInvert), by_factor(To::kSharpness, 0.263266981F)});
  require_draws({kNested, kMixed, kLast}, RandomKey{42, 7, SampleId{4}},
                {by_value(To::kPosterize, 3), by_factor(To::kSharpness, 1.76209641F), simple(To::kFlipHorizontal),
                 by_factor(To::kSolarize, 90.0F), simple(To::kEqualize), simple(To::kInvert),
                 by_factor(To::kSharpness, 2.36542535F)});
  require_draws({kNested, kMixed, kLast}, RandomKey{42, 7, SampleId{5}},
                {simple(To::kFlipVertical), simple(To::kFlipHorizontal), by_factor(To::kSolarize, 90.0F),
                 simple(To::kInvert), by_factor(To::kPillowBlur, 1.05671382F), by_factor(To::kSharpness, 2.47938132F)});
  require_draws({kNested, kMixed, kLast}, kFar,
                {by_factor(To::kSharpness, 0.832513273F), simple(To::kFlipHorizontal), by_factor(To::kSolarize, 90.0F),
                 simple(To::kInvert), by_factor(To::kPillowBlur, 1.00435841F), by_factor(To::kSharpness, 1.0104233F)});
}

TEST_CASE("a recipe that names no step draws none, and a probability of 0 none either", "[draw]") {
  require_draws({}, kNear, {});
  for (std::uint64_t i = 0; i < 1000; ++i) {
    require_draws({{.probability = 0, .kind = steps::Simple::kInvert}}, {1, 1, SampleId{i}}, {});
    require_draws({{.kind = steps::Simple::kInvert}}, {1, 1, SampleId{i}}, {simple(To::kInvert)});
  }
}

TEST_CASE("an erased rectangle stays what it was", "[draw]") {
  const Erasing often{.probability = 0.8F};
  const std::vector<std::optional<Box>> expected{
      Box{46, 54, 28, 10}, Box{44, 28, 38, 26}, std::nullopt,        Box{11, 14, 20, 50}, Box{22, 0, 22, 30},
      Box{41, 22, 42, 33}, Box{10, 19, 30, 26}, Box{42, 16, 32, 28}, Box{46, 3, 16, 51},  std::nullopt,
  };
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    REQUIRE(draw_erased(often, {97, 64}, {42, 7, SampleId{i}}) ==
            std::vector<Box>(expected[i].has_value() ? 1 : 0, expected[i].value_or(Box{})));
  }
  const Erasing hardly{.probability = 1, .scale = {0.8F, 1}};
  REQUIRE(draw_erased(hardly, {33, 31}, {42, 7, SampleId{2}}) == std::vector{Box{3, 0, 29, 29}});
  REQUIRE(draw_erased(hardly, {33, 31}, {42, 7, SampleId{5}}) == std::vector{Box{1, 0, 32, 28}});
  REQUIRE(draw_erased(hardly, {33, 31}, {42, 7, SampleId{0}}).empty());
}

TEST_CASE("several rectangles are up to as many as the recipe says, each of its part of the share", "[draw]") {
  const Erasing erasing{.probability = 1, .scale = {0.3F, 0.3F}, .ratio = {1, 1}, .most = 3};
  std::array<int, 4> counts{};
  for (std::uint64_t i = 0; i < 300; ++i) {
    const std::vector<Box> boxes = draw_erased(erasing, {100, 100}, {42, 7, SampleId{i}});
    REQUIRE((!boxes.empty() && boxes.size() <= 3));
    ++counts[boxes.size()];
    const double side = std::sqrt(100.0 * 100 * 0.3 / static_cast<double>(boxes.size()));
    for (const Box& box : boxes) CHECK((std::abs(box.width - side) <= 0.51 && std::abs(box.height - side) <= 0.51));
  }
  CHECK((counts[1] > 60 && counts[2] > 60 && counts[3] > 60));
}

TEST_CASE("the noise of a rectangle stays what it was", "[draw]") {
  for (const auto& [key, expected] :
       {std::pair{kNear, std::vector<double>{1.32908595632, -0.0470714796949, 0.0757893024791, 1.70824716286,
                                             -1.39943307923, -0.0558528960416}},
        std::pair{kFar, std::vector<double>{-0.0040027816535, 2.53475427173, -0.610986330621, 0.404182923667,
                                            1.35933555194, -0.623480881932}}}) {
    RandomStream random(key, RandomStream::Use::kNoise);
    for (const double number : expected) require_equal(random.normal(), number);
  }
}

}  // namespace
}  // namespace millrace
