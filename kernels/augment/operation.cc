#include "kernels/augment/operation.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace millrace::kernels {
namespace {

bool is_inside(const Box& box, Size size) {
  return box.left >= 0 && box.top >= 0 && box.width >= 0 && box.height >= 0 && box.width <= size.width &&
         box.height <= size.height && box.left <= size.width - box.width && box.top <= size.height - box.height;
}

// Coordinates beyond these would not fit the integers that they become.
bool is_moderate(double value) {
  return std::abs(value) <= 1e9;
}

// What lies outside the picture is its reflection, which reaches no further than its other edge.
bool is_kernel(int side, Size size) {
  return side >= 1 && side <= kLargestKernel && side % 2 == 1 && side / 2 < std::min(size.width, size.height);
}

bool is_valid(Size size, const Operation& operation) {
  switch (operation.step) {
    case Step::kPosterize:
      return operation.value >= 1 && operation.value <= 8;
    case Step::kSolarizeAdd:
      return operation.value >= -255 && operation.value <= 255 && std::abs(operation.factor) <= 1e6F;
    case Step::kSolarize:
    case Step::kBrightness:
    case Step::kContrast:
    case Step::kSaturation:
    case Step::kSharpness:
      return std::abs(operation.factor) <= 1e6F;
    case Step::kQuarterTurns:
      return operation.value >= 0 && operation.value <= 3;
    case Step::kAffine:
    case Step::kPerspective:
      return operation.sampling <= Sampling::kBicubic &&
             std::all_of(operation.matrix.begin(), operation.matrix.end(), is_moderate);
    case Step::kErase:
      return is_inside(operation.box, size);
    case Step::kGaussianBlur:
      return is_kernel(operation.value, size) && operation.factor > 0 && operation.factor <= 1e6F;
    case Step::kPillowBlur:
      return operation.factor > 0 && operation.factor <= kLargestPillowBlur;
    case Step::kMixStart:
    case Step::kMixAdd:
    case Step::kMixEnd:
      return operation.factor >= 0 && operation.factor <= 1;
    default:
      return operation.step <= Step::kErase;
  }
}

// Follows the sums in a list.
class Sums {
 public:
  // False where it may not stand here.
  bool take(const Operation& operation) {
    switch (operation.step) {
      case Step::kMixStart:
        return !std::exchange(is_in_one_, true);
      case Step::kMixAdd:
        return is_in_one_ && ++added_ <= kMostMixed;
      case Step::kMixEnd:
        return std::exchange(is_in_one_, false) && std::exchange(added_, 0) > 0;
      default:
        return !is_in_one_ || operation.step != Step::kQuarterTurns || operation.value % 2 == 0;
    }
  }

  bool are_ended() const { return !is_in_one_; }

 private:
  bool is_in_one_ = false;
  int added_ = 0;
};

Size size_after(Size size, const Operation& operation) {
  const bool turns = operation.step == Step::kQuarterTurns && operation.value % 2 == 1;
  return turns ? Size{size.height, size.width} : size;
}

}  // namespace

Size size_after(Size size, std::span<const Operation> operations) {
  for (const Operation& operation : operations) size = size_after(size, operation);
  return size;
}

bool is_valid(Size size, std::span<const Operation> operations) {
  if (size.width < 1 || size.height < 1 || size.width > kLongestSide || size.height > kLongestSide) return false;
  if (std::int64_t{size.width} * size.height > kLargestArea || operations.size() > kMostOperations) return false;
  Sums sums;
  for (const Operation& operation : operations) {
    if (!is_valid(size, operation) || !sums.take(operation)) return false;
    size = size_after(size, operation);
  }
  return sums.are_ended();
}

}  // namespace millrace::kernels
