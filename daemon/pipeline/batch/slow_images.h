// Tells the operator of images that take long to read or to make. Thread-bound(control).
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "daemon/observe/bounded_log.h"
#include "daemon/pipeline/batch/batch.h"

namespace millrace {

class SlowImages {
 public:
  // What takes longer than `slow` is told of; 0: nothing.
  explicit SlowImages(std::chrono::milliseconds slow) : slow_(slow) {}

  void tell_over(std::chrono::milliseconds slow) { slow_ = slow; }

  void note(const Batch& batch, std::uint32_t index, std::string_view verb, std::chrono::nanoseconds took) {
    if (slow_.count() != 0 && took > slow_) tell(batch, index, verb, took);
  }

 private:
  void tell(const Batch& batch, std::uint32_t index, std::string_view verb, std::chrono::nanoseconds took);

  std::chrono::milliseconds slow_;
  SeldomLine line_;
};

}  // namespace millrace
