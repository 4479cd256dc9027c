#include "daemon/plan/resized_size.h"

#include <algorithm>
#include <limits>

namespace millrace {
namespace {

// side * numerator / denominator, truncated.
std::uint32_t scaled(std::uint32_t side, std::uint32_t numerator, std::uint32_t denominator) {
  const std::uint64_t exact = std::uint64_t{side} * numerator / denominator;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(exact, 1, kMost));
}

struct ResizedSize {
  Size size;

  Size operator()(KeepSize) const { return size; }
  Size operator()(const ExactSize& exact) const { return exact.size; }
  Size operator()(const ShorterSide& shorter) const {
    if (size.width <= size.height) return {shorter.pixels, scaled(shorter.pixels, size.height, size.width)};
    return {scaled(shorter.pixels, size.width, size.height), shorter.pixels};
  }
  Size operator()(const LongerSide& longer) const {
    if (size.width <= size.height) return {scaled(longer.pixels, size.width, size.height), longer.pixels};
    return {longer.pixels, scaled(longer.pixels, size.height, size.width)};
  }
};

}  // namespace

Size resized_size(const Resize& resize, Size size) {
  return std::visit(ResizedSize{size}, resize);
}

}  // namespace millrace
