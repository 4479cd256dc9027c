// How long something took, each time: counted by powers of two of microseconds, so that a median and a 99th percentile
// can be told to a factor of two whatever the load.
//
// Thread-safe: relaxed atomics. Two of them are changed for each duration, some 10 ns.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace millrace {

class Histogram {
 public:
  // Bucket i has what took less than 2^i microseconds and no less than half of that; the last one all that took longer
  // than the one before, 67 s.
  static constexpr std::size_t kBuckets = 28;
  using Counts = std::array<std::uint64_t, kBuckets>;

  void add(std::chrono::microseconds took) {
    const auto micros = static_cast<std::uint64_t>(std::max<std::int64_t>(took.count(), 0));
    const auto bucket = std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(micros)), kBuckets - 1);
    counts_[bucket].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(micros, std::memory_order_relaxed);
  }

  Counts counts() const {
    Counts counts{};
    for (std::size_t i = 0; i < kBuckets; ++i) counts[i] = counts_[i].load(std::memory_order_relaxed);
    return counts;
  }
  std::chrono::microseconds sum() const {
    return std::chrono::microseconds(static_cast<std::int64_t>(sum_.load(std::memory_order_relaxed)));
  }
  // Of what is in the bucket, all was less than this. REQUIRES: not the last one.
  static constexpr std::chrono::microseconds bound(std::size_t bucket) {
    return std::chrono::microseconds(std::int64_t{1} << bucket);
  }

 private:
  // Writers: any thread. Readers: statistics. Each cell stands for itself.
  std::array<std::atomic<std::uint64_t>, kBuckets> counts_{};
  std::atomic<std::uint64_t> sum_{0};
};

}  // namespace millrace
