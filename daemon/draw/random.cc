#include "daemon/draw/random.h"

#include <cmath>
#include <numbers>

namespace millrace {
namespace {

// Multipliers and Weyl increments of Philox4x32 (section 3.3 of the paper).
constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

constexpr std::uint32_t low_half(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}
constexpr std::uint32_t high_half(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 32U);
}

__extension__ using Wide = unsigned __int128;

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {high_half(product1) ^ counter[1] ^ key[0], low_half(product1), high_half(product0) ^ counter[3] ^ key[1],
               low_half(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

RandomStream::RandomStream(RandomKey key, Use use)
    : hidden_(
          philox4x32({low_half(key.epoch), high_half(key.epoch), low_half(raw(key.sample)), high_half(raw(key.sample))},
                     {low_half(key.seed), high_half(key.seed)})),
      use_(static_cast<std::uint32_t>(use) | std::uint32_t{key.view} << 16U) {}

std::uint32_t RandomStream::next() {
  if (used_ == numbers_.size()) {
    numbers_ = philox4x32({hidden_[2], hidden_[3], use_, block_++}, {hidden_[0], hidden_[1]});
    used_ = 0;
  }
  return numbers_[used_++];
}

double RandomStream::uniform() {
  const std::uint64_t high = next() >> 5U;  // 27 bits
  const std::uint64_t low = next() >> 6U;   // 26 bits
  return static_cast<double>(high << 26U | low) * 0x1p-53;
}

double RandomStream::uniform(double low, double high) {
  const double value = low + (high - low) * uniform();
  return value < high || low == high ? value : std::nextafter(high, low);  // the sum may have been rounded up to `high`
}

double RandomStream::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));  // of (0, 1]
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

// Lemire: "Fast random integer generation in an interval", ACM TOMACS 29 (2019), algorithm 5; in 32 bits where the
// bound fits.
std::uint64_t RandomStream::below(std::uint64_t bound) {
  if (bound <= 1ULL << 32U) {
    std::uint64_t product = bound * next();
    if (low_half(product) < bound) {
      const std::uint64_t threshold = (1ULL << 32U) % bound;
      while (low_half(product) < threshold) product = bound * next();
    }
    return high_half(product);
  }
  const auto draw = [&] {
    const std::uint64_t low = next();
    return Wide{bound} * (std::uint64_t{next()} << 32U | low);
  };
  Wide product = draw();
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (static_cast<std::uint64_t>(product) < threshold) product = draw();
  }
  return static_cast<std::uint64_t>(product >> 64U);
}

}  // namespace millrace
