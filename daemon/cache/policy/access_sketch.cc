#include "daemon/cache/policy/access_sketch.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace millrace {
namespace {

constexpr std::size_t kFewest = 1024;
constexpr std::uint64_t kAccessesPerCounter = 2;  // then counts are halved

}  // namespace

AccessSketch::AccessSketch(std::size_t counters) : counters_(std::bit_ceil(std::max(counters, kFewest))) {}

// A different odd multiplier for each row, the upper half of the product.
std::size_t AccessSketch::place(std::uint64_t thing, unsigned row) const {
  static constexpr std::array<std::uint64_t, kRows> kOdd{0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
                                                         0xD6E8FEB86659FD93};
  const std::uint64_t mixed = (thing ^ (thing >> 29)) * kOdd[row];
  return (mixed ^ (mixed >> 32)) & (counters_.size() - 1);
}

void AccessSketch::access(std::uint64_t thing, double now) {
  if (since_ < 0) since_ = now;
  const unsigned least = count(thing);
  if (least < std::numeric_limits<std::uint8_t>::max()) {
    for (unsigned row = 0; row < kRows; ++row) {
      std::uint8_t& counter = counters_[place(thing, row)];
      if (counter == least) ++counter;
    }
  }
  if (++accesses_ > kAccessesPerCounter * counters_.size()) halve(now);
}

unsigned AccessSketch::count(std::uint64_t thing) const {
  unsigned least = counters_[place(thing, 0)];
  for (unsigned row = 1; row < kRows; ++row) least = std::min<unsigned>(least, counters_[place(thing, row)]);
  return least;
}

double AccessSketch::span(double now) const {
  return since_ < 0 ? 1.0 : std::max(now - since_, 1.0);
}

void AccessSketch::halve(double now) {
  for (std::uint8_t& counter : counters_) counter = static_cast<std::uint8_t>(counter / 2);
  accesses_ /= 2;
  since_ = now - (now - since_) / 2;
}

}  // namespace millrace
