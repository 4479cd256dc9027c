#include "daemon/draw/step_cost.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace millrace {
namespace {

// From the table of kernels/augment/README.md, with AVX2, rounded up.
constexpr double kValuePs = 1'000;                                    // a step that changes each pixel by itself
constexpr double kHistogramPs = 2'000;                                // one that looks at all of them first
constexpr std::array<double, 3> kTransformPs{2'000, 14'000, 40'000};  // nearest, bilinear, bicubic
constexpr double kTapPs = 400;                                        // of a Gaussian kernel, both ways
constexpr double kPillowBlurPs = 8'000;
constexpr double kNoisePs = 100'000;  // of the standard normal distribution, three a pixel

double transform_ps(const Surroundings& around) {
  return kTransformPs[std::min<std::size_t>(static_cast<std::size_t>(around.sampling), kTransformPs.size() - 1)];
}

double all_of(const std::vector<Step>& steps);

struct CostOf {
  double operator()(steps::Simple simple) const {
    return simple < steps::Simple::kAutoContrast ? kValuePs : kHistogramPs;
  }
  double operator()(const steps::Posterize&) const { return kValuePs; }
  double operator()(const steps::Solarize&) const { return kValuePs; }
  double operator()(const steps::Sharpness&) const { return kHistogramPs; }
  double operator()(const steps::ColorJitter&) const { return 4 * kHistogramPs; }
  double operator()(const steps::GaussianBlur& step) const { return kTapPs * step.kernel_size; }
  double operator()(const steps::PillowBlur&) const { return kPillowBlurPs; }
  double operator()(const steps::Rotation& step) const { return transform_ps(step.around); }
  double operator()(const steps::Affine& step) const { return transform_ps(step.around); }
  double operator()(const steps::Perspective& step) const { return transform_ps(step.around); }
  double operator()(const steps::Shift&) const { return kValuePs; }
  double operator()(const steps::RandAugment& step) const { return step.operations * policy_ps(step.around); }
  double operator()(const steps::TrivialAugmentWide& step) const { return policy_ps(step.around); }
  double operator()(const steps::AutoAugment& step) const { return 2 * policy_ps(step.around); }
  double operator()(const steps::TimmRandAugment& step) const {
    return step.operations * step.probability *
           policy_ps({.sampling = step.sampling.value_or(PixelSampling::kBicubic)});
  }
  double operator()(const steps::AugMix& step) const { return mixed_ps(step.width, step.depth, step.around); }
  double operator()(const steps::TimmAugMix& step) const {
    return mixed_ps(step.width, step.depth, {.sampling = step.sampling.value_or(PixelSampling::kBicubic)});
  }
  double operator()(const steps::Sequence& group) const { return all_of(group.steps); }
  double operator()(const steps::AnyOrder& group) const { return all_of(group.steps); }
  double operator()(const steps::OneOf& group) const {
    return all_of(group.steps) / static_cast<double>(std::max<std::size_t>(group.steps.size(), 1));
  }

 private:
  // A third of their operations move pixels.
  static double policy_ps(const Surroundings& around) { return (2 * kHistogramPs + transform_ps(around)) / 3; }
  // Each chain is added up beside what is done in it.
  static double mixed_ps(std::uint32_t width, std::uint32_t depth, const Surroundings& around) {
    return width * ((depth == 0 ? 2 : depth) * policy_ps(around) + kHistogramPs) + kHistogramPs;
  }
};

double all_of(const std::vector<Step>& steps) {
  return std::accumulate(steps.begin(), steps.end(), 0.0, [](double sum, const Step& step) {
    return sum + step.probability * std::visit(CostOf{}, step.kind);
  });
}

std::uint32_t most_kept(const std::vector<Step>& steps);

struct KeptBy {
  std::uint32_t operator()(const steps::AugMix& step) const { return 1 + step.width; }
  std::uint32_t operator()(const steps::TimmAugMix& step) const { return 1 + step.width; }
  std::uint32_t operator()(const steps::Sequence& group) const { return most_kept(group.steps); }
  std::uint32_t operator()(const steps::AnyOrder& group) const { return most_kept(group.steps); }
  std::uint32_t operator()(const steps::OneOf& group) const { return most_kept(group.steps); }
  template <class Other>
  std::uint32_t operator()(const Other&) const {
    return 0;
  }
};

std::uint32_t most_kept(const std::vector<Step>& steps) {
  std::uint32_t most = 0;
  for (const Step& step : steps) most = std::max(most, std::visit(KeptBy{}, step.kind));
  return most;
}

}  // namespace

std::uint32_t kept_pictures(const Recipe& recipe) {
  return most_kept(recipe.steps);
}

std::uint64_t step_pixel_ps(const Recipe& recipe) {
  double cost = recipe.steps.empty() ? 0 : all_of(recipe.steps) + kValuePs;  // to planes and back
  if (recipe.erasing) {
    const Erasing& erasing = *recipe.erasing;
    const double each = erasing.noise == Erasing::Noise::kPixel ? kNoisePs : kValuePs;
    cost += erasing.probability * (erasing.scale.low + erasing.scale.high) / 2 * each;
  }
  return static_cast<std::uint64_t>(cost);
}

}  // namespace millrace
