#include "daemon/draw/draw_erasing.h"

#include <cmath>
#include <optional>

#include "daemon/draw/random.h"

namespace millrace {

namespace {

// One rectangle of a share of `area`, pixels.
std::optional<Box> draw_rectangle(const Erasing& erasing, Size size, double area, RandomStream& random) {
  constexpr int kAttempts = 10;
  const double low = std::log(static_cast<double>(erasing.ratio.low)),
               high = std::log(static_cast<double>(erasing.ratio.high));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double erased = area * random.uniform(erasing.scale.low, erasing.scale.high);
    const double ratio = std::exp(random.uniform(low, high));
    const double height = std::nearbyint(std::sqrt(erased * ratio));
    const double width = std::nearbyint(std::sqrt(erased / ratio));
    if (!(height >= 1 && height < size.height && width >= 1 && width < size.width)) continue;
    const auto w = static_cast<std::uint32_t>(width), h = static_cast<std::uint32_t>(height);
    const std::uint64_t top = random.below(std::uint64_t{size.height} - h + 1);
    const std::uint64_t left = random.below(std::uint64_t{size.width} - w + 1);
    return Box{static_cast<std::int32_t>(left), static_cast<std::int32_t>(top), static_cast<std::int32_t>(w),
               static_cast<std::int32_t>(h)};
  }
  return std::nullopt;
}

}  // namespace

std::vector<Box> draw_erased(const Erasing& erasing, Size size, RandomKey key) {
  RandomStream random(key, RandomStream::Use::kErase);
  std::vector<Box> erased;
  if (random.uniform() >= erasing.probability) return erased;
  const std::uint64_t count = erasing.most > 1 ? 1 + random.below(erasing.most) : 1;
  const double area = static_cast<double>(size.width) * size.height / static_cast<double>(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (const std::optional<Box> box = draw_rectangle(erasing, size, area, random)) erased.push_back(*box);
  }
  return erased;
}

}  // namespace millrace
