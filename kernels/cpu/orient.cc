#include "kernels/cpu/orient.h"

#include <algorithm>
#include <cstring>

namespace millrace::kernels {
namespace {

// Every turn is a walk through the stored picture with one constant step along an output row and another from row to
// row.
struct Walk {
  const std::uint8_t* first;
  std::ptrdiff_t step_x;
  std::ptrdiff_t step_y;
};

Walk walk_of(const U8View& stored, Orientation orientation) {
  const auto at = [&](Point point) {
    const Point from = stored_point(point, stored.size(), orientation);
    return from.y * stored.stride + std::ptrdiff_t{from.x} * stored.channels;
  };
  const std::ptrdiff_t origin = at({0, 0});
  return {stored.data + origin, at({1, 0}) - origin, at({0, 1}) - origin};
}

// Tiles keep both pictures' lines in the first-level cache while sides are swapped.
constexpr int kTile = 32;

template <int kChannels>
void copy_tile(const Walk& walk, int left, int top, int right, int bottom, const MutableU8View& out) {
  for (int y = top; y < bottom; ++y) {
    const std::uint8_t* in = walk.first + y * walk.step_y + left * walk.step_x;
    std::uint8_t* to = out.row(y) + std::ptrdiff_t{left} * kChannels;
    for (int x = left; x < right; ++x, in += walk.step_x, to += kChannels) std::memcpy(to, in, kChannels);
  }
}

template <int kChannels>
bool copy_tiles(const Walk& walk, const MutableU8View& out, TimeLimit* limit) {
  for (int y = 0; y < out.height; y += kTile) {
    if (limit != nullptr && limit->is_over_after(static_cast<std::uint64_t>(out.width) * kTile * kChannels))
      return false;
    for (int x = 0; x < out.width; x += kTile) {
      copy_tile<kChannels>(walk, x, y, std::min(x + kTile, out.width), std::min(y + kTile, out.height), out);
    }
  }
  return true;
}

}  // namespace

bool orient(const U8View& stored, Orientation orientation, const MutableU8View& out, TimeLimit* limit) {
  if (orientation == Orientation::kUpright || orientation == Orientation::kFlip) {
    const std::size_t bytes = static_cast<std::size_t>(out.width) * out.channels;
    for (int y = 0; y < out.height; ++y) {
      if (limit != nullptr && limit->is_over_after(bytes)) return false;
      std::memcpy(out.row(y), stored.row(orientation == Orientation::kFlip ? out.height - 1 - y : y), bytes);
    }
    return true;
  }
  const Walk walk = walk_of(stored, orientation);
  if (out.channels == 1) return copy_tiles<1>(walk, out, limit);
  return out.channels == 3 ? copy_tiles<3>(walk, out, limit) : copy_tiles<4>(walk, out, limit);
}

namespace reference {

void orient(const U8View& stored, Orientation orientation, const MutableU8View& out) {
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x) {
      const Point from = stored_point({x, y}, stored.size(), orientation);
      for (int c = 0; c < out.channels; ++c)
        out.row(y)[x * out.channels + c] = stored.row(from.y)[from.x * out.channels + c];
    }
  }
}

}  // namespace reference

}  // namespace millrace::kernels
