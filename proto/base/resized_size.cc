#include "proto/base/resized_size.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace millrace {
namespace {

// side * numerator / denominator, truncated.
std::uint32_t scaled(std::uint32_t side, std::uint32_t numerator, std::uint32_t denominator) {
  const std::uint64_t exact = std::uint64_t{side} * numerator / denominator;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(exact, 1, kMost));
}

std::uint32_t to_side(double pixels) {
  return static_cast<std::uint32_t>(std::clamp<double>(pixels, 1, std::numeric_limits<std::uint32_t>::max()));
}

// nearbyint() rounds halves to even, as Python's round().
Size smart_size(const SmartResize& smart, Size size) {
  const double factor = std::max(1U, smart.factor), width = size.width, height = size.height;
  double w = std::nearbyint(width / factor) * factor;
  double h = std::nearbyint(height / factor) * factor;
  const auto most = static_cast<double>(smart.max_pixels), least = static_cast<double>(smart.min_pixels);
  if (h * w > most) {
    const double shrink = std::sqrt(height * width / most);
    w = std::max(factor, std::floor(width / shrink / factor) * factor);
    h = std::max(factor, std::floor(height / shrink / factor) * factor);
  } else if (h * w < least) {
    const double grow = std::sqrt(least / (height * width));
    w = std::ceil(width * grow / factor) * factor;
    h = std::ceil(height * grow / factor) * factor;
  }
  return {to_side(w), to_side(h)};
}

// Columns and rows, and how far their ratio is from the crop's.
struct Grid {
  std::uint32_t columns = 1;
  std::uint32_t rows = 1;
  double distance = std::numeric_limits<double>::infinity();

  std::uint32_t tiles() const { return columns * rows; }
  std::pair<std::uint32_t, std::uint32_t> rank() const { return {tiles(), columns}; }
};

// `visit(grid)` for every grid of min_tiles to max_tiles.
template <class Visit>
void each_grid(const TileGrid& limits, Size size, Visit visit) {
  const double ratio = static_cast<double>(size.width) / size.height;
  const std::uint32_t most = std::min(limits.max_tiles, TileGrid::kMostTiles);
  for (std::uint32_t columns = 1; columns <= most; ++columns) {
    const std::uint32_t fewest = std::max(1U, (limits.min_tiles + columns - 1) / columns);
    for (std::uint32_t rows = fewest; columns * rows <= most; ++rows)
      visit(Grid{columns, rows, std::fabs(ratio - static_cast<double>(columns) / rows)});
  }
}

Size tiled_size(const TileGrid& limits, Size size) {
  double nearest = std::numeric_limits<double>::infinity();
  each_grid(limits, size, [&](const Grid& grid) { nearest = std::min(nearest, grid.distance); });
  const std::uint64_t crop = std::uint64_t{size.width} * size.height;
  const std::uint64_t tile = std::uint64_t{limits.tile.width} * limits.tile.height;
  const auto is_small = [&](const Grid& grid) { return tile * grid.tiles() < 2 * crop; };
  std::optional<Grid> best;
  each_grid(limits, size, [&](const Grid& grid) {
    if (grid.distance != nearest) return;
    const bool wins = !best || (is_small(grid) ? !is_small(*best) || grid.rank() > best->rank()
                                               : !is_small(*best) && grid.rank() < best->rank());
    if (wins) best = grid;
  });
  const Grid grid = best.value_or(Grid{});
  return {to_side(static_cast<double>(limits.tile.width) * grid.columns),
          to_side(static_cast<double>(limits.tile.height) * grid.rows)};
}

Size bounded_size(const BoundedSides& sides, Size size) {
  const double ratio = static_cast<double>(size.width) / size.height;
  Size bounded = size;
  if (size.width >= size.height && size.width > sides.longest)
    bounded = {sides.longest, to_side(sides.longest / ratio)};
  else if (size.height > size.width && size.height > sides.longest)
    bounded = {to_side(sides.longest * ratio), sides.longest};
  return {std::max(bounded.width, sides.shortest), std::max(bounded.height, sides.shortest)};
}

// The bound shrinks the sides as truncated, as torchvision does.
Size shorter_side_size(const ShorterSide& asked, Size size) {
  const auto [shorter, longer] = std::minmax(size.width, size.height);
  Size portrait{asked.pixels, scaled(asked.pixels, longer, shorter)};
  if (asked.longest && portrait.height > *asked.longest)
    portrait = {scaled(*asked.longest, asked.pixels, portrait.height), *asked.longest};
  return size.width <= size.height ? portrait : Size{portrait.height, portrait.width};
}

struct ResizedSize {
  Size size;

  Size operator()(KeepSize) const { return size; }
  Size operator()(const ExactSize& exact) const { return exact.size; }
  Size operator()(const ShorterSide& shorter) const { return shorter_side_size(shorter, size); }
  Size operator()(const LongerSide& longer) const {
    if (size.width <= size.height) return {scaled(longer.pixels, size.width, size.height), longer.pixels};
    return {longer.pixels, scaled(longer.pixels, size.height, size.width)};
  }
  Size operator()(const SmartResize& smart) const { return smart_size(smart, size); }
  Size operator()(const TileGrid& grid) const { return tiled_size(grid, size); }
  Size operator()(const BoundedSides& sides) const { return bounded_size(sides, size); }
  Size operator()(const ScaleJitter&) const { return size; }  // is drawn first: see resized_size()
  Size operator()(const RandomShorterSide&) const { return size; }
};

}  // namespace

Result<void> check_resizable(const Resize& resize, Size size) {
  constexpr std::uint64_t kMostRatio = 200;
  if (!std::holds_alternative<SmartResize>(resize)) return {};
  const auto [shorter, longer] = std::minmax(size.width, size.height);
  if (longer <= kMostRatio * shorter) return {};
  return Error{Code::kInvalid,
               "a crop of " + std::to_string(size.width) + "x" + std::to_string(size.height) +
                   " pixels has one side over 200 times the other, which recipe.resize.smart does not take"};
}

Size resized_size(const Resize& resize, Size size) {
  return std::visit(ResizedSize{size}, resize);
}

}  // namespace millrace
