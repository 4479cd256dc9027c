#include "daemon/draw/draw_steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "daemon/draw/mixed_chains.h"
#include "daemon/draw/perspective.h"
#include "daemon/draw/policies.h"
#include "daemon/draw/published_space.h"
#include "daemon/draw/random.h"
#include "daemon/draw/timm_space.h"
#include "kernels/augment/named_operation.h"

namespace millrace {
namespace {

using kernels::Operation;

static_assert(static_cast<int>(PixelSampling::kBicubic) == static_cast<int>(kernels::Sampling::kBicubic));

kernels::Sampling sampling_of(const Surroundings& around) {
  return static_cast<kernels::Sampling>(around.sampling);
}

double draw(const Interval& interval, RandomStream& random) {
  return random.uniform(interval.low, interval.high);
}

Operation plain(kernels::Step step) {
  Operation operation;
  operation.step = step;
  return operation;
}

Operation with_factor(kernels::Step step, double factor) {
  Operation operation = plain(step);
  operation.factor = static_cast<float>(factor);
  return operation;
}

Operation moved(kernels::Step step, const std::array<double, 8>& matrix, const Surroundings& around) {
  Operation operation = plain(step);
  operation.matrix = matrix;
  operation.sampling = sampling_of(around);
  operation.fill = around.fill;
  return operation;
}

double radians(double degrees) {
  return degrees * (std::numbers::pi / 180.0);
}

struct Motion {
  double degrees, shift_x, shift_y, scale, shear_x, shear_y;  // shifts in pixels, shears in degrees
};

// From a pixel of the result to one of the source: the inverse of a rotation, shears and a scale about the middle, then
// a shift, with the terms in torchvision's order (functional.py, _get_inverse_affine_matrix), for they round.
std::array<double, 8> inverse_of(const Motion& motion, kernels::Size size) {
  const double turn = radians(motion.degrees), sx = radians(motion.shear_x), sy = radians(motion.shear_y);
  const double x = size.width * 0.5, y = size.height * 0.5;
  const double a = std::cos(turn - sy) / std::cos(sy);
  const double b = -std::cos(turn - sy) * std::tan(sx) / std::cos(sy) - std::sin(turn);
  const double c = std::sin(turn - sy) / std::cos(sy);
  const double d = -std::sin(turn - sy) * std::tan(sx) / std::cos(sy) + std::cos(turn);
  std::array<double, 8> matrix{d / motion.scale, -b / motion.scale, 0, -c / motion.scale, a / motion.scale, 0};
  matrix[2] += matrix[0] * (-x - motion.shift_x) + matrix[1] * (-y - motion.shift_y);
  matrix[5] += matrix[3] * (-x - motion.shift_x) + matrix[4] * (-y - motion.shift_y);
  matrix[2] += x;
  matrix[5] += y;
  return matrix;
}

// The numbers below `count`, in random order. REQUIRES: count <= Step::kMost.
class Permutation {
 public:
  // Fisher-Yates.
  Permutation(std::size_t count, RandomStream& random) : count_(count) {
    std::iota(numbers_.begin(), numbers_.begin() + static_cast<std::ptrdiff_t>(count), 0U);
    for (std::size_t left = count; left > 1; --left) std::swap(numbers_[left - 1], numbers_[random.below(left)]);
  }

  const std::uint32_t* begin() const { return numbers_.data(); }
  const std::uint32_t* end() const { return numbers_.data() + count_; }

 private:
  std::array<std::uint32_t, Step::kMost> numbers_{};
  std::size_t count_;
};

const std::vector<Step>* inner_steps(const Step& step) {
  if (const auto* const group = std::get_if<steps::Sequence>(&step.kind)) return &group->steps;
  if (const auto* const group = std::get_if<steps::AnyOrder>(&step.kind)) return &group->steps;
  if (const auto* const group = std::get_if<steps::OneOf>(&step.kind)) return &group->steps;
  return nullptr;
}

// The step itself and what is in it.
std::uint32_t count_of(const Step& step) {
  std::uint32_t count = 1;
  if (const std::vector<Step>* const inner = inner_steps(step)) {
    for (const Step& one : *inner) count += count_of(one);
  }
  return count;
}

// Of the steps of a group whose first one has number `first`.
std::uint32_t number_of(const std::vector<Step>& steps, std::size_t index, std::uint32_t first) {
  for (std::size_t i = 0; i < index; ++i) first += count_of(steps[i]);
  return first;
}

std::size_t chosen(const steps::OneOf& group, RandomStream& random) {
  if (group.weights.empty()) return static_cast<std::size_t>(random.below(group.steps.size()));
  double rest = random.uniform() * std::accumulate(group.weights.begin(), group.weights.end(), 0.0);
  std::size_t last = 0;  // that has any weight: for sums that round
  for (std::size_t i = 0; i < group.weights.size(); ++i) {
    if (group.weights[i] <= 0) continue;
    last = i;
    if (rest < group.weights[i]) return i;
    rest -= group.weights[i];
  }
  return last;
}

class Drawing {
 public:
  Drawing(kernels::Size size, RandomKey key, std::vector<Operation>& operations)
      : size_(size), key_(key), operations_(operations) {}

  void draw_one(const Step& step, std::uint32_t number) {
    RandomStream random(key_, RandomStream::use_of_step(number));
    if (random.uniform() >= step.probability) return;
    std::visit([&](const auto& kind) { add(kind, number, random); }, step.kind);
  }

 private:
  void push(const Operation& operation) { operations_.push_back(operation); }

  void named(std::string_view name, double magnitude, const Surroundings& around) {
    const auto operation = kernels::named_operation(name, magnitude, size_, sampling_of(around), around.fill);
    if (operation) push(*operation);
  }

  void add(steps::Simple simple, std::uint32_t, RandomStream&) {
    constexpr kernels::Step kSteps[] = {kernels::Step::kFlipHorizontal, kernels::Step::kFlipVertical,
                                        kernels::Step::kGrey,           kernels::Step::kInvert,
                                        kernels::Step::kAutocontrast,   kernels::Step::kEqualize};
    push(plain(kSteps[static_cast<std::size_t>(simple)]));
  }

  void add(const steps::Posterize& step, std::uint32_t, RandomStream&) {
    Operation operation = plain(kernels::Step::kPosterize);
    operation.value = static_cast<int>(step.bits);
    push(operation);
  }

  void add(const steps::Solarize& step, std::uint32_t, RandomStream&) {
    push(with_factor(kernels::Step::kSolarize, step.threshold));
  }

  void add(const steps::Sharpness& step, std::uint32_t, RandomStream& random) {
    push(with_factor(kernels::Step::kSharpness, draw(step.factor, random)));
  }

  // The order first, then the factors of those that are set.
  void add(const steps::ColorJitter& step, std::uint32_t, RandomStream& random) {
    const Permutation order(4, random);
    std::array<std::optional<Operation>, 4> parts;
    if (step.brightness) parts[0] = with_factor(kernels::Step::kBrightness, draw(*step.brightness, random));
    if (step.contrast) parts[1] = with_factor(kernels::Step::kContrast, draw(*step.contrast, random));
    if (step.saturation) parts[2] = with_factor(kernels::Step::kSaturation, draw(*step.saturation, random));
    if (step.hue) {
      parts[3] = plain(kernels::Step::kHue);
      parts[3]->value = static_cast<int>(draw(*step.hue, random) * 255);
    }
    for (const std::uint32_t part : order) {
      if (parts[part]) push(*parts[part]);
    }
  }

  void add(const steps::GaussianBlur& step, std::uint32_t, RandomStream& random) {
    Operation operation = with_factor(kernels::Step::kGaussianBlur, draw(step.sigma, random));
    operation.value = static_cast<int>(step.kernel_size);
    push(operation);
  }

  void add(const steps::PillowBlur& step, std::uint32_t, RandomStream& random) {
    push(with_factor(kernels::Step::kPillowBlur, draw(step.radius, random)));
  }

  void add(const steps::Rotation& step, std::uint32_t, RandomStream& random) {
    named("Rotate", draw(step.degrees, random), step.around);
  }

  void add(const steps::Affine& step, std::uint32_t, RandomStream& random) {
    const double most_x = static_cast<double>(step.translate_x) * size_.width;
    const double most_y = static_cast<double>(step.translate_y) * size_.height;
    Motion motion{};
    motion.degrees = draw(step.degrees, random);
    motion.shift_x = std::nearbyint(random.uniform(-most_x, most_x));
    motion.shift_y = std::nearbyint(random.uniform(-most_y, most_y));
    motion.scale = draw(step.scale, random);
    motion.shear_x = draw(step.shear_x, random);
    motion.shear_y = draw(step.shear_y, random);
    push(moved(kernels::Step::kAffine, inverse_of(motion, size_), step.around));
  }

  // Top and left of the crop within the padded image, in torchvision's order.
  void add(const steps::Shift& step, std::uint32_t, RandomStream& random) {
    const auto drawn = [&](std::uint32_t most) {
      return static_cast<double>(random.below(2 * std::uint64_t{most} + 1)) - most;
    };
    const double y = drawn(step.y), x = drawn(step.x);
    push(moved(kernels::Step::kAffine, {1, 0, x, 0, 1, y}, {.fill = step.fill}));
  }

  void add(const steps::Perspective& step, std::uint32_t, RandomStream& random) {
    const auto coefficients = perspective_coefficients(draw_corners(step.distortion, size_, random), size_);
    if (coefficients) push(moved(kernels::Step::kPerspective, *coefficients, step.around));
  }

  // Which and its sign, for each in turn.
  void add(const steps::RandAugment& step, std::uint32_t, RandomStream& random) {
    for (std::uint32_t i = 0; i < step.operations; ++i) {
      const PublishedOperation& operation = published_operations()[random.below(published_operations().size())];
      const double magnitude = magnitude_of(operation, Space::kNarrow, step.magnitude, step.bins, size_);
      named(operation.name, with_sign(operation, magnitude, random), step.around);
    }
  }

  // Which, its bin, its sign.
  void add(const steps::TrivialAugmentWide& step, std::uint32_t, RandomStream& random) {
    const PublishedOperation& operation = published_operations()[random.below(published_operations().size())];
    const auto bin = static_cast<std::uint32_t>(random.below(step.bins));
    const double magnitude = magnitude_of(operation, Space::kWide, bin, step.bins, size_);
    named(operation.name, with_sign(operation, magnitude, random), step.around);
  }

  // Which pair, then for each of it whether it is done, and its sign.
  void add(const steps::AutoAugment& step, std::uint32_t, RandomStream& random) {
    const auto pairs = sub_policies(step.policy);
    const SubPolicy& pair = pairs[random.below(pairs.size())];
    for (const PolicyOperation& one : {pair.first, pair.second}) {
      const bool is_done = random.uniform() < one.probability;
      const PublishedOperation& operation = *published_operation(one.name);
      const auto bin = static_cast<std::uint32_t>(one.bin);
      const double magnitude =
          with_sign(operation, magnitude_of(operation, Space::kNarrow, bin, kPolicyBins, size_), random);
      if (is_done) named(operation.name, magnitude, step.around);
    }
  }

  void add(const steps::TimmRandAugment& step, std::uint32_t, RandomStream& random) {
    for (std::uint32_t i = 0; i < step.operations; ++i) {
      if (const auto operation = draw_timm_operation(step, size_, random)) push(*operation);
    }
  }

  void add(const steps::AugMix& step, std::uint32_t, RandomStream& random) {
    draw_mixed_chains(step, size_, random, operations_);
  }

  void add(const steps::TimmAugMix& step, std::uint32_t, RandomStream& random) {
    draw_mixed_chains(step, size_, random, operations_);
  }

  void add(const steps::Sequence& group, std::uint32_t number, RandomStream&) {
    for (std::size_t i = 0; i < group.steps.size(); ++i) inner(group.steps, i, number);
  }

  void add(const steps::AnyOrder& group, std::uint32_t number, RandomStream& random) {
    for (const std::uint32_t i : Permutation(group.steps.size(), random)) inner(group.steps, i, number);
  }

  void add(const steps::OneOf& group, std::uint32_t number, RandomStream& random) {
    inner(group.steps, chosen(group, random), number);
  }

  void inner(const std::vector<Step>& steps, std::size_t index, std::uint32_t group) {
    draw_one(steps[index], number_of(steps, index, group + 1));
  }

  static double with_sign(const PublishedOperation& operation, double magnitude, RandomStream& random) {
    return operation.is_signed && random.below(2) == 1 ? -magnitude : magnitude;
  }

  const kernels::Size size_;
  const RandomKey key_;
  std::vector<Operation>& operations_;
};

}  // namespace

void draw_steps(std::span<const Step> steps, kernels::Size size, RandomKey key, std::vector<Operation>& operations) {
  Drawing drawing(size, key, operations);
  std::uint32_t number = 0;
  for (const Step& step : steps) {
    drawing.draw_one(step, number);
    number += count_of(step);
  }
}

}  // namespace millrace
