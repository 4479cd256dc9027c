// What things do take for each nanosecond that was expected of them: a running mean, over some twenty of them. Of one
// user's, so that nobody's odd files change what is expected of others'. Value.
#pragma once

#include <algorithm>
#include <cstdint>

namespace millrace {

class CostRatio {
 public:
  // What is to be expected, of what was expected before anything was learnt.
  std::uint64_t scaled(std::uint64_t expected) const {
    return static_cast<std::uint64_t>(static_cast<double>(expected) * ratio());
  }
  // The other way round.
  std::uint64_t unscaled(std::uint64_t expected) const {
    return static_cast<std::uint64_t>(static_cast<double>(expected) / ratio());
  }

  // `expected`: before scaled().
  void learn(std::uint64_t expected, std::uint64_t took) {
    expected_ = expected_ * kKept + static_cast<double>(expected);
    took_ = took_ * kKept + static_cast<double>(took);
  }

 private:
  static constexpr double kKept = 0.95;
  static constexpr double kBegin = 1e6;  // nanoseconds that were right, so that the first one does not decide alone
  static constexpr double kLeast = 1e-3, kMost = 1e3;

  double ratio() const { return std::clamp(took_ / expected_, kLeast, kMost); }

  double expected_ = kBegin, took_ = kBegin;
};

}  // namespace millrace
