#include "daemon/plan/steps_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace millrace {
namespace {

std::string to_text(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

Error wrong_step(std::string_view field, const std::string& what) {
  return Error{Code::kInvalid, std::string(field) + ": " + what};
}

// The first way of saying it that NaN fails, too. Values are of single precision; a bound's nearest one is within it.
Result<void> check_value(std::string_view field, double value, double least, double most) {
  if (value >= std::min(least, double{static_cast<float>(least)}) &&
      value <= std::max(most, double{static_cast<float>(most)}))
    return {};
  return wrong_step(field, "must be between " + to_text(least) + " and " + to_text(most) + ", is " + to_text(value));
}

Result<void> check_interval(const std::string& field, const Interval& interval, double least, double most) {
  MILLRACE_TRY_VOID(check_value(field + ".low", interval.low, least, most));
  MILLRACE_TRY_VOID(check_value(field + ".high", interval.high, least, most));
  if (interval.low <= interval.high) return {};
  return wrong_step(field, "low, " + to_text(interval.low) + ", is over high, " + to_text(interval.high));
}

Result<void> check_interval(const std::string& field, const std::optional<Interval>& interval, double least,
                            double most) {
  return interval ? check_interval(field, *interval, least, most) : Result<void>{};
}

Result<void> check_around(const std::string& field, const Surroundings& around) {
  if (around.sampling <= PixelSampling::kBicubic) return {};
  return wrong_step(field + ".around.sampling", "is not one of nearest, bilinear and bicubic");
}

constexpr double kMostFactor = 1000, kMostPixels = 100, kLeastPixels = 0.001, kMostDegrees = 36'000;
constexpr double kMostShear = 89;  // degrees: a right angle leaves no width
constexpr double kLeastScale = 0.001, kMostScale = 1000;
constexpr std::uint32_t kMostKernel = 99, kMostOperations = 16, kMostBins = 1000, kMostShift = 4096;

// Checks one step, and adds up the operations that a sample may get by it.
class CheckStep {
 public:
  // `shortest`: side of every output, pixels; nullopt: they differ.
  CheckStep(std::string at, std::optional<std::uint32_t> shortest) : at_(std::move(at)), shortest_(shortest) {}

  std::uint32_t operations() const { return operations_; }

  Result<void> operator()(steps::Simple simple) {
    operations_ = 1;
    if (simple <= steps::Simple::kEqualize) return {};
    return wrong_step(at_ + ".simple", "is no step");
  }
  Result<void> operator()(const steps::Posterize& step) {
    operations_ = 1;
    return check_value(at_ + ".posterize", step.bits, 1, 8);
  }
  Result<void> operator()(const steps::Solarize& step) {
    operations_ = 1;
    return check_value(at_ + ".solarize", step.threshold, 0, 256);
  }
  Result<void> operator()(const steps::Sharpness& step) {
    operations_ = 1;
    return check_interval(at_ + ".sharpness", step.factor, 0, kMostFactor);
  }
  Result<void> operator()(const steps::ColorJitter& step) {
    operations_ = 4;
    const std::string at = at_ + ".color_jitter";
    MILLRACE_TRY_VOID(check_interval(at + ".brightness", step.brightness, 0, kMostFactor));
    MILLRACE_TRY_VOID(check_interval(at + ".contrast", step.contrast, 0, kMostFactor));
    MILLRACE_TRY_VOID(check_interval(at + ".saturation", step.saturation, 0, kMostFactor));
    MILLRACE_TRY_VOID(check_interval(at + ".hue", step.hue, -0.5, 0.5));
    if (step.brightness || step.contrast || step.saturation || step.hue) return {};
    return wrong_step(at, "changes nothing: set brightness, contrast, saturation or hue");
  }
  Result<void> operator()(const steps::GaussianBlur& step) {
    operations_ = 1;
    const std::string at = at_ + ".gaussian_blur";
    if (step.kernel_size % 2 == 0)
      return wrong_step(at + ".kernel_size", "must be odd, is " + std::to_string(step.kernel_size));
    MILLRACE_TRY_VOID(check_value(at + ".kernel_size", step.kernel_size, 1, kMostKernel));
    if (shortest_ && step.kernel_size / 2 >= *shortest_)
      return wrong_step(at + ".kernel_size", "must be less than twice the shorter side, which is " +
                                                 std::to_string(*shortest_) + " pixels, is " +
                                                 std::to_string(step.kernel_size));
    return check_interval(at + ".sigma", step.sigma, kLeastPixels, kMostPixels);
  }
  Result<void> operator()(const steps::PillowBlur& step) {
    operations_ = 1;
    return check_interval(at_ + ".pillow_blur", step.radius, kLeastPixels, kMostPixels);
  }
  Result<void> operator()(const steps::Rotation& step) {
    operations_ = 1;
    MILLRACE_TRY_VOID(check_around(at_ + ".rotation", step.around));
    return check_interval(at_ + ".rotation.degrees", step.degrees, -kMostDegrees, kMostDegrees);
  }
  Result<void> operator()(const steps::Affine& step) {
    operations_ = 1;
    const std::string at = at_ + ".affine";
    MILLRACE_TRY_VOID(check_around(at, step.around));
    MILLRACE_TRY_VOID(check_interval(at + ".degrees", step.degrees, -kMostDegrees, kMostDegrees));
    MILLRACE_TRY_VOID(check_value(at + ".translate_x", step.translate_x, 0, 1));
    MILLRACE_TRY_VOID(check_value(at + ".translate_y", step.translate_y, 0, 1));
    MILLRACE_TRY_VOID(check_interval(at + ".scale", step.scale, kLeastScale, kMostScale));
    MILLRACE_TRY_VOID(check_interval(at + ".shear_x", step.shear_x, -kMostShear, kMostShear));
    return check_interval(at + ".shear_y", step.shear_y, -kMostShear, kMostShear);
  }
  Result<void> operator()(const steps::Shift& step) {
    operations_ = 1;
    MILLRACE_TRY_VOID(check_value(at_ + ".shift.x", step.x, 0, kMostShift));
    return check_value(at_ + ".shift.y", step.y, 0, kMostShift);
  }
  Result<void> operator()(const steps::Perspective& step) {
    operations_ = 1;
    MILLRACE_TRY_VOID(check_around(at_ + ".perspective", step.around));
    return check_value(at_ + ".perspective.distortion", step.distortion, 0, 1);
  }
  Result<void> operator()(const steps::RandAugment& step) {
    operations_ = step.operations;
    const std::string at = at_ + ".rand_augment";
    MILLRACE_TRY_VOID(check_around(at, step.around));
    MILLRACE_TRY_VOID(check_value(at + ".operations", step.operations, 1, kMostOperations));
    MILLRACE_TRY_VOID(check_value(at + ".bins", step.bins, 2, kMostBins));
    return check_value(at + ".magnitude", step.magnitude, 0, step.bins - 1);
  }
  Result<void> operator()(const steps::TrivialAugmentWide& step) {
    operations_ = 1;
    MILLRACE_TRY_VOID(check_around(at_ + ".trivial_augment_wide", step.around));
    return check_value(at_ + ".trivial_augment_wide.bins", step.bins, 2, kMostBins);
  }
  Result<void> operator()(const steps::AutoAugment& step) {
    operations_ = 2;
    if (step.policy > steps::AugmentPolicy::kSvhn) return wrong_step(at_ + ".auto_augment.policy", "is none");
    return check_around(at_ + ".auto_augment", step.around);
  }
  Result<void> operator()(const steps::TimmRandAugment& step) {
    operations_ = step.operations;
    const std::string at = at_ + ".timm_rand_augment";
    MILLRACE_TRY_VOID(check_value(at + ".operations", step.operations, 1, kMostOperations));
    MILLRACE_TRY_VOID(check_value(at + ".magnitude", step.magnitude, 0, 10));
    MILLRACE_TRY_VOID(check_value(at + ".magnitude_std", step.magnitude_std, 0, 100));
    MILLRACE_TRY_VOID(check_value(at + ".probability", step.probability, 0, 1));
    return check_around(at, {.sampling = step.sampling.value_or(PixelSampling::kNearest)});
  }
  Result<void> operator()(const steps::AugMix& step) {
    const std::string at = at_ + ".aug_mix";
    MILLRACE_TRY_VOID(check_around(at, step.around));
    MILLRACE_TRY_VOID(check_value(at + ".severity", step.severity, 1, 10));
    return check_chains(at, step.width, step.depth, step.alpha);
  }
  Result<void> operator()(const steps::TimmAugMix& step) {
    const std::string at = at_ + ".timm_aug_mix";
    MILLRACE_TRY_VOID(check_around(at, {.sampling = step.sampling.value_or(PixelSampling::kNearest)}));
    MILLRACE_TRY_VOID(check_value(at + ".magnitude", step.magnitude, 0, 10));
    MILLRACE_TRY_VOID(check_value(at + ".magnitude_std", step.magnitude_std.value_or(0), 0, 100));
    return check_chains(at, step.width, step.depth, step.alpha);
  }
  Result<void> operator()(const steps::Sequence& group) { return check_group(at_ + ".sequence", group.steps, false); }
  Result<void> operator()(const steps::AnyOrder& group) { return check_group(at_ + ".any_order", group.steps, false); }
  Result<void> operator()(const steps::OneOf& group) {
    const std::string at = at_ + ".one_of";
    MILLRACE_TRY_VOID(check_group(at, group.steps, true));
    if (group.weights.empty()) return {};
    if (group.weights.size() != group.steps.size())
      return wrong_step(at + ".weights", "must be as many as steps, " + std::to_string(group.steps.size()) + ", are " +
                                             std::to_string(group.weights.size()));
    for (std::size_t i = 0; i < group.weights.size(); ++i)
      MILLRACE_TRY_VOID(check_value(at + ".weights[" + std::to_string(i) + "]", group.weights[i], 0, 1e6));
    if (std::any_of(group.weights.begin(), group.weights.end(), [](float weight) { return weight > 0; })) return {};
    return wrong_step(at + ".weights", "are all 0: nothing could be chosen");
  }

  // Of steps of which one alone is done, or all.
  Result<void> check_group(const std::string& at, const std::vector<Step>& steps, bool is_choice) {
    if (steps.empty()) return wrong_step(at, "has no steps: name some, or leave it out");
    for (std::size_t i = 0; i < steps.size(); ++i) {
      CheckStep check(at + ".steps[" + std::to_string(i) + "]", shortest_);
      MILLRACE_TRY_VOID(check_value(check.at_ + ".probability", steps[i].probability, 0, 1));
      MILLRACE_TRY_VOID(std::visit(check, steps[i].kind));
      operations_ = is_choice ? std::max(operations_, check.operations_) : operations_ + check.operations_;
    }
    return {};
  }

 private:
  // A sum's beginning and end, and of each chain its operations and what adds it.
  Result<void> check_chains(const std::string& at, std::uint32_t width, std::uint32_t depth, float alpha) {
    MILLRACE_TRY_VOID(check_value(at + ".width", width, 1, Step::kMostChains));
    MILLRACE_TRY_VOID(check_value(at + ".depth", depth, 0, kMostOperations));
    operations_ = 2 + width * (1 + (depth == 0 ? 3 : depth));
    return check_value(at + ".alpha", alpha, 0.1, 100);
  }

  std::string at_;
  std::optional<std::uint32_t> shortest_;
  std::uint32_t operations_ = 0;
};

// Of groups in each other, the steps themselves counted.
std::uint32_t depth_of(const std::vector<Step>& steps) {
  std::uint32_t most = 0;
  for (const Step& step : steps) {
    std::uint32_t within = 0;
    if (const auto* const group = std::get_if<steps::Sequence>(&step.kind)) within = depth_of(group->steps);
    if (const auto* const group = std::get_if<steps::AnyOrder>(&step.kind)) within = depth_of(group->steps);
    if (const auto* const group = std::get_if<steps::OneOf>(&step.kind)) within = depth_of(group->steps);
    most = std::max(most, 1 + within);
  }
  return most;
}

}  // namespace

Result<void> check_steps(const Recipe& recipe) {
  if (recipe.steps.empty()) return {};
  const std::size_t steps = count_steps(recipe.steps);
  if (steps > Step::kMost)
    return wrong_step("recipe.steps",
                      "at most " + std::to_string(Step::kMost) + " in all, are " + std::to_string(steps));
  if (depth_of(recipe.steps) > Step::kMostNested)
    return wrong_step("recipe.steps", "at most " + std::to_string(Step::kMostNested) + " in each other");
  const std::optional<Size> size = fixed_size(recipe);
  CheckStep check("recipe", size ? std::optional(std::min(size->width, size->height)) : std::nullopt);
  MILLRACE_TRY_VOID(check.check_group("recipe", recipe.steps, false));
  if (check.operations() <= Step::kMost) return {};
  return wrong_step("recipe.steps", "make up to " + std::to_string(check.operations()) +
                                        " operations a sample, at most " + std::to_string(Step::kMost) + " are done");
}

Result<void> check_erasing(const Recipe& recipe) {
  if (!recipe.erasing) return {};
  constexpr double kMostRatio = 1e6;
  const Erasing& erasing = *recipe.erasing;
  const std::string at = "recipe.erasing";
  MILLRACE_TRY_VOID(check_value(at + ".probability", erasing.probability, 0, 1));
  MILLRACE_TRY_VOID(check_interval(at + ".scale", erasing.scale, 1e-6, 1));
  MILLRACE_TRY_VOID(check_interval(at + ".ratio", erasing.ratio, 1 / kMostRatio, kMostRatio));
  for (std::size_t i = 0; i < erasing.value.size(); ++i) {
    const std::string value = at + ".value[" + std::to_string(i) + "]";
    if (!std::isfinite(erasing.value[i])) return wrong_step(value, "must be finite");
    if (recipe.dtype == DType::kUint8) MILLRACE_TRY_VOID(check_value(value, erasing.value[i], 0, 255));
    if (recipe.dtype == DType::kFloat16) MILLRACE_TRY_VOID(check_value(value, erasing.value[i], -65'504, 65'504));
  }
  constexpr std::uint32_t kMostErased = 16;
  if (erasing.most < 1 || erasing.most > kMostErased)
    return wrong_step(at + ".most",
                      "must be between 1 and " + std::to_string(kMostErased) + ", is " + std::to_string(erasing.most));
  if (erasing.noise > Erasing::Noise::kPixel) return wrong_step(at + ".noise", "is none");
  if (erasing.noise != Erasing::Noise::kNone && recipe.dtype == DType::kUint8)
    return wrong_step(at + ".noise", "makes no sense of uint8 output: ask for floats, or give a value");
  if (recipe.patches) return wrong_step(at, "is not done to patches: leave one of them out");
  return {};
}

}  // namespace millrace
