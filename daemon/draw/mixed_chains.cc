#include "daemon/draw/mixed_chains.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "daemon/draw/published_space.h"
#include "daemon/draw/timm_space.h"
#include "kernels/augment/named_operation.h"

namespace millrace {
namespace {

using kernels::Operation;
static_assert(kernels::kMostMixed == Step::kMostChains);

using Weights = std::array<double, Step::kMostChains>;

// Marsaglia, Tsang: "A Simple Method for Generating Gamma Variables", ACM TOMS 26 (2000); below a shape of 1 with their
// section 6.
double draw_gamma(double shape, RandomStream& random) {
  if (shape < 1) {
    const double larger = draw_gamma(shape + 1, random);
    return larger * std::pow(1.0 - random.uniform(), 1.0 / shape);
  }
  const double d = shape - 1.0 / 3.0, c = 1.0 / std::sqrt(9.0 * d);
  while (true) {
    const double x = random.normal(), root = 1.0 + c * x;
    const double log_of = std::log(1.0 - random.uniform());
    if (root <= 0) continue;
    const double v = root * root * root;
    if (log_of < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

// The first `count` of them, whose sum is 1, of the symmetric Dirichlet distribution.
Weights draw_weights(std::size_t count, float alpha, RandomStream& random) {
  Weights weights{};
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += weights[i] = draw_gamma(static_cast<double>(alpha), random);
  for (std::size_t i = 0; i < count; ++i) weights[i] /= sum;
  return weights;
}

Operation mixing(kernels::Step step, double factor) {
  Operation operation;
  operation.step = step;
  operation.factor = static_cast<float>(factor);
  return operation;
}

std::uint32_t draw_depth(std::uint32_t depth, RandomStream& random) {
  return depth != 0 ? depth : 1 + static_cast<std::uint32_t>(random.below(3));
}

struct Choice {
  std::string_view name;
  double most;  // magnitude; shifts as a share of the side
  bool is_signed;
};

// torchvision's, in its order; the last four only of all operations.
constexpr Choice kChoices[] = {{"ShearX", 0.3, true},     {"ShearY", 0.3, true},      {"TranslateX", 1, true},
                               {"TranslateY", 1, true},   {"Rotate", 30, true},       {"Posterize", 4, false},
                               {"Solarize", 255, false},  {"AutoContrast", 0, false}, {"Equalize", 0, false},
                               {"Brightness", 0.9, true}, {"Color", 0.9, true},       {"Contrast", 0.9, true},
                               {"Sharpness", 0.9, true}};
constexpr std::uint32_t kBins = 10, kFewer = 9;

double magnitude_of(const Choice& choice, std::uint32_t bin, kernels::Size size) {
  if (choice.name == "TranslateX") return linspace(0, size.width / 3.0, bin, kBins);
  if (choice.name == "TranslateY") return linspace(0, size.height / 3.0, bin, kBins);
  if (choice.name == "Posterize") return 4 - std::nearbyint(static_cast<float>(bin) / 2.25F);  // bits
  if (choice.name == "Solarize") return linspace(choice.most, 0, bin, kBins);
  return linspace(0, choice.most, bin, kBins);
}

// Which, its bin and its sign, of those that have one. 0 bits make a black image.
Operation draw_operation(const steps::AugMix& step, kernels::Size size, RandomStream& random) {
  const Choice& choice = kChoices[random.below(step.all_operations ? std::size(kChoices) : kFewer)];
  double magnitude = 0;
  if (choice.most > 0) magnitude = magnitude_of(choice, static_cast<std::uint32_t>(random.below(step.severity)), size);
  if (choice.is_signed && random.below(2) == 1) magnitude = -magnitude;
  if (choice.name == "Posterize" && magnitude == 0) return mixing(kernels::Step::kBrightness, 0);
  const auto sampling = static_cast<kernels::Sampling>(step.around.sampling);
  return *kernels::named_operation(choice.name, magnitude, size, sampling, step.around.fill);
}

}  // namespace

void draw_mixed_chains(const steps::AugMix& step, kernels::Size size, RandomStream& random,
                       std::vector<Operation>& operations) {
  const Weights share = draw_weights(2, step.alpha, random);  // of the image, and of all chains
  const Weights weights = draw_weights(step.width, step.alpha, random);
  operations.push_back(mixing(kernels::Step::kMixStart, share[0]));
  for (std::uint32_t chain = 0; chain < step.width; ++chain) {
    for (std::uint32_t left = draw_depth(step.depth, random); left > 0; --left)
      operations.push_back(draw_operation(step, size, random));
    const float weight = static_cast<float>(weights[chain]) * static_cast<float>(share[1]);
    operations.push_back(mixing(kernels::Step::kMixAdd, static_cast<double>(weight)));
  }
  operations.push_back(mixing(kernels::Step::kMixEnd, 1));
}

void draw_mixed_chains(const steps::TimmAugMix& step, kernels::Size size, RandomStream& random,
                       std::vector<Operation>& operations) {
  const Weights share = draw_weights(2, step.alpha, random);
  const Weights weights = draw_weights(step.width, step.alpha, random);
  operations.push_back(mixing(kernels::Step::kMixStart, 0));
  for (std::uint32_t chain = 0; chain < step.width; ++chain) {
    for (std::uint32_t left = draw_depth(step.depth, random); left > 0; --left) {
      if (const auto operation = draw_timm_operation(step, size, random)) operations.push_back(*operation);
    }
    operations.push_back(mixing(kernels::Step::kMixAdd, weights[chain]));
  }
  operations.push_back(mixing(kernels::Step::kMixEnd, share[1]));
}

}  // namespace millrace
