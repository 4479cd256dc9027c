// What an event is to streams and to those who wait for it. Operations hold it beside its owner, who may destroy it while
// streams still have to pass it. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>

#include "proto/base/mutex.h"
#include "tests/support/cuda_driver/order.h"

namespace millrace::sim {

class EventState {
 public:
  // Recorded once more, in a stream that knows so much. Returns the record's number.
  std::uint64_t record(Knowledge knows) {
    MutexLock lock(mutex_);
    knows_ = std::move(knows);
    return ++recorded_;
  }
  // The latest; 0: there was none.
  std::uint64_t recorded() const {
    MutexLock lock(mutex_);
    return recorded_;
  }
  Knowledge knows() const {
    MutexLock lock(mutex_);
    return knows_;
  }

  void complete(std::uint64_t record) {
    MutexLock lock(mutex_);
    completed_ = record;
    completed_at_ = std::chrono::steady_clock::now();
    changed_.notify_all();
  }
  bool is_complete(std::uint64_t record) const {
    MutexLock lock(mutex_);
    return completed_ >= record;
  }
  // As is_complete(), after `limit` at most.
  bool wait(std::uint64_t record, std::chrono::microseconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    MutexLock lock(mutex_);
    while (completed_ < record)
      if (!changed_.wait_until(mutex_, deadline)) break;
    return completed_ >= record;
  }
  // False: it never completed.
  bool completed_at(std::chrono::steady_clock::time_point& at) const {
    MutexLock lock(mutex_);
    at = completed_at_;
    return completed_ != 0;
  }

 private:
  mutable Mutex mutex_;
  Condition changed_;
  std::uint64_t recorded_ MILLRACE_GUARDED_BY(mutex_) = 0, completed_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::chrono::steady_clock::time_point completed_at_ MILLRACE_GUARDED_BY(mutex_);
  Knowledge knows_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::sim
