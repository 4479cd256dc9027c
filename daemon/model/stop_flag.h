// Says to the threads that work on something, a batch or a segment, that nobody wants it any more. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>

namespace millrace {

class StopFlag {
 public:
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  // The same, for those who do not know this class.
  const std::atomic<bool>& flag() const { return stopped_; }

 private:
  // Writer: the control thread. Reader: fetch threads, between samples; lanes, within a sample, too; the maker of
  // segments, between portions. Publishes nothing but itself.
  std::atomic<bool> stopped_{false};
};

}  // namespace millrace
