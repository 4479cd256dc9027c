// A counter by one label, as by backend or by user: a cell for each value that came up. What clients can cause values of
// without end costs no more than kMost cells: the values that come later are all counted as "other".
//
// Thread-safe: relaxed atomics; only value_of() has a lock, and is asked once by code that counts often.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/base/mutex.h"

namespace millrace {

enum class LabelValue : std::uint8_t {};  // the place of a value in its counter

struct LabelledCount {
  std::string value;  // "cpu"
  std::int64_t count = 0;
};

class Labelled {
 public:
  static constexpr std::size_t kMost = 64;  // "other" among them

  LabelValue value_of(std::string_view value) MILLRACE_EXCLUDES(mutex_);
  void add(LabelValue value, std::int64_t n) {
    cells_[static_cast<std::size_t>(value)].fetch_add(n, std::memory_order_relaxed);
  }

  // In the order in which they came up, "other" last and only if anything was counted there.
  std::vector<LabelledCount> counts() const MILLRACE_EXCLUDES(mutex_);

 private:
  static constexpr std::size_t kOther = kMost - 1;

  // Writers: any thread. Readers: statistics. Each cell stands for itself.
  std::array<std::atomic<std::int64_t>, kMost> cells_{};
  mutable Mutex mutex_;
  std::vector<std::string> values_ MILLRACE_GUARDED_BY(mutex_);  // of the first cells
};

}  // namespace millrace
