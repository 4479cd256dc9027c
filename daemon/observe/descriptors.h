// How many descriptors this process has open, and may have. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>

#include "daemon/observe/counters.h"

namespace millrace {

class DescriptorCount {
 public:
  // Counts them, at most once a second: it takes a microsecond for each where the kernel is older than 6.2. No work for
  // the control thread.
  void look(Counters& counters);

 private:
  std::atomic<std::chrono::steady_clock::rep> last_{0};  // of the last count: the thread that moves it on counts
};

}  // namespace millrace
