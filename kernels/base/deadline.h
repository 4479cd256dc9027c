// When to give up on an image: at a time, or as soon as nobody wants it any more. Value.
#pragma once

#include <atomic>
#include <chrono>

namespace millrace::kernels {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  // `unwanted`: set by any thread; outlives whatever is done by this deadline. nullptr: the time alone counts.
  Deadline(Clock::time_point time = Clock::time_point::max(), const std::atomic<bool>* unwanted = nullptr)
      : time_(time), unwanted_(unwanted) {}

  Clock::time_point time() const { return time_; }
  bool is_unwanted() const { return unwanted_ != nullptr && unwanted_->load(std::memory_order_relaxed); }
  bool is_over(Clock::time_point now = Clock::now()) const { return now > time_ || is_unwanted(); }

 private:
  Clock::time_point time_;
  const std::atomic<bool>* unwanted_;
};

}  // namespace millrace::kernels
