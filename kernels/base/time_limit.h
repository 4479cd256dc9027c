// When to give up: looked at by loops over rows, now and then. A look costs what some hundred samples do, so it is taken
// once in kLook of them, which is some fifty microseconds. Thread-bound(its owner).
//
//   TimeLimit limit;
//   limit.set(deadline);
//   for (rows) { if (limit.is_over_after(samples of the row)) return; ... }
#pragma once

#include <cstdint>

#include "kernels/base/deadline.h"

namespace millrace::kernels {

class TimeLimit {
 public:
  using Clock = Deadline::Clock;
  static constexpr std::uint64_t kLook = std::uint64_t{1} << 16;  // samples

  // Never over unless it is set.
  void set(const Deadline& deadline) {
    deadline_ = deadline;
    samples_ = 0;
    is_over_ = false;
  }

  // `samples` more were or will be worked on.
  bool is_over_after(std::uint64_t samples) {
    samples_ += samples;
    if (samples_ >= kLook) look();
    return is_over_;
  }
  // What was seen at the last look.
  bool is_over() const { return is_over_; }

 private:
  void look() {
    samples_ = 0;
    is_over_ = is_over_ || deadline_.is_over();
  }

  Deadline deadline_;
  std::uint64_t samples_ = 0;
  bool is_over_ = false;
};

}  // namespace millrace::kernels
