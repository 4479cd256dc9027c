#include "daemon/draw/timm_space.h"

#include <algorithm>
#include <cstdint>

#include "kernels/augment/named_operation.h"

namespace millrace {
namespace {

using kernels::Operation;

constexpr double kLargestMagnitude = 10;                      // of magnitudes
constexpr double kShiftShare = 0.45, kMixedShiftShare = 0.3;  // of a side

enum class Kind : std::uint8_t {
  kAutoContrast,
  kEqualize,
  kInvert,
  kRotate,
  kPosterize,
  kSolarize,
  kSolarizeAdd,
  kColor,
  kContrast,
  kBrightness,
  kSharpness,
  kShearX,
  kShearY,
  kShiftX,
  kShiftY,
};
constexpr std::uint64_t kKinds = 15;

constexpr Kind kMixed[] = {Kind::kAutoContrast, Kind::kColor,  Kind::kContrast,  Kind::kBrightness, Kind::kSharpness,
                           Kind::kEqualize,     Kind::kRotate, Kind::kPosterize, Kind::kSolarize,   Kind::kShearX,
                           Kind::kShearY,       Kind::kShiftX, Kind::kShiftY};

Operation timm_operation(kernels::Step step) {
  Operation operation;
  operation.step = step;
  return operation;
}

Operation enhanced(kernels::Step step, double factor) {
  Operation operation = timm_operation(step);
  operation.factor = static_cast<float>(factor);
  return operation;
}

// 0 bits make a black image.
std::optional<Operation> posterized(int bits) {
  if (bits >= 8) return std::nullopt;
  if (bits == 0) return enhanced(kernels::Step::kBrightness, 0);
  Operation operation = timm_operation(kernels::Step::kPosterize);
  operation.value = bits;
  return operation;
}

Operation solarize_added(int added) {
  Operation operation = enhanced(kernels::Step::kSolarizeAdd, 128);
  operation.value = added;
  return operation;
}

// As a matrix from the result to the source, row by row.
Operation moved(const std::array<double, 8>& matrix) {
  Operation operation = timm_operation(kernels::Step::kAffine);
  operation.matrix = matrix;
  return operation;
}

// One operation at its level, a share of the largest magnitude.
class AtLevel {
 public:
  AtLevel(const steps::TimmRandAugment& step, double level, kernels::Size size, RandomStream& random,
          double shift_share = kShiftShare)
      : step_(step), level_(level), shift_share_(shift_share), size_(size), random_(random) {}

  std::optional<Operation> of(Kind kind) {
    switch (kind) {
      case Kind::kAutoContrast:
        return timm_operation(kernels::Step::kAutocontrast);
      case Kind::kEqualize:
        return timm_operation(kernels::Step::kEqualize);
      case Kind::kInvert:
        return timm_operation(kernels::Step::kInvert);
      case Kind::kPosterize:
        return posterized(step_.increasing ? 4 - whole(4) : whole(4));
      case Kind::kSolarize:
        return enhanced(kernels::Step::kSolarize, step_.increasing ? 256 - whole(256) : whole(256));
      case Kind::kSolarizeAdd:
        return solarize_added(std::min(128, whole(110)));
      case Kind::kColor:
        return enhanced(kernels::Step::kSaturation, factor());
      case Kind::kContrast:
        return enhanced(kernels::Step::kContrast, factor());
      case Kind::kBrightness:
        return enhanced(kernels::Step::kBrightness, factor());
      case Kind::kSharpness:
        return enhanced(kernels::Step::kSharpness, factor());
      default:
        return placed(kind);
    }
  }

 private:
  int whole(double most) const { return static_cast<int>(level_ * most); }
  double with_sign(double value) { return random_.uniform() < 0.5 ? -value : value; }
  double factor() { return step_.increasing ? std::max(0.1, 1.0 + with_sign(level_ * 0.9)) : level_ * 1.8 + 0.1; }

  std::optional<Operation> placed(Kind kind) {
    const kernels::Sampling sampling = drawn_sampling();
    std::optional<Operation> operation;
    switch (kind) {
      case Kind::kShearX:
        operation = moved({1, with_sign(level_ * 0.3), 0, 0, 1, 0});
        break;
      case Kind::kShearY:
        operation = moved({1, 0, 0, with_sign(level_ * 0.3), 1, 0});
        break;
      case Kind::kShiftX:
        operation = moved({1, 0, with_sign(level_ * shift_share_) * size_.width, 0, 1, 0});
        break;
      case Kind::kShiftY:
        operation = moved({1, 0, 0, 0, 1, with_sign(level_ * shift_share_) * size_.height});
        break;
      default:
        operation = kernels::named_operation("Rotate", with_sign(level_ * 30), size_, sampling, step_.fill);
        break;
    }
    operation->sampling = sampling;
    operation->fill = step_.fill;
    return operation;
  }

  kernels::Sampling drawn_sampling() {
    if (step_.sampling) return static_cast<kernels::Sampling>(*step_.sampling);
    return random_.below(2) == 0 ? kernels::Sampling::kBilinear : kernels::Sampling::kBicubic;
  }

  const steps::TimmRandAugment& step_;
  const double level_;
  const double shift_share_;
  const kernels::Size size_;
  RandomStream& random_;
};

}  // namespace

std::optional<Operation> draw_timm_operation(const steps::TimmRandAugment& step, kernels::Size size,
                                             RandomStream& random) {
  const auto kind = static_cast<Kind>(random.below(kKinds));
  const bool is_done = random.uniform() < step.probability;
  const double magnitude = step.magnitude + static_cast<double>(step.magnitude_std) * random.normal();
  if (!is_done) return std::nullopt;
  return AtLevel(step, std::clamp(magnitude, 0.0, kLargestMagnitude) / kLargestMagnitude, size, random).of(kind);
}

std::optional<Operation> draw_timm_operation(const steps::TimmAugMix& step, kernels::Size size, RandomStream& random) {
  const Kind kind = kMixed[random.below(std::size(kMixed))];
  const auto most = static_cast<double>(step.magnitude);
  const double magnitude =
      step.magnitude_std ? most + static_cast<double>(*step.magnitude_std) * random.normal() : most * random.uniform();
  const steps::TimmRandAugment increasing{.increasing = true, .fill = step.fill, .sampling = step.sampling};
  const double level = std::clamp(magnitude, 0.0, kLargestMagnitude) / kLargestMagnitude;
  return AtLevel(increasing, level, size, random, kMixedShiftShare).of(kind);
}

}  // namespace millrace
