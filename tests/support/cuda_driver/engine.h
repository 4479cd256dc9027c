// What a device does at the same time: some kernels, and a copy each way. Among streams that wait, the one of the
// highest priority is let in first. Thread-safe.
#pragma once

#include <cstddef>
#include <set>

#include "proto/base/mutex.h"

namespace millrace::sim {

enum class EngineKind { kNone, kCompute, kToDevice, kToHost };

class Engine {
 public:
  explicit Engine(int room) : room_(room) {}

  // `priority`: the least number comes first.
  void enter(int priority) {
    MutexLock lock(mutex_);
    const auto me = waiting_.insert(priority);
    while (room_ == 0 || priority > *waiting_.begin()) changed_.wait(mutex_);
    waiting_.erase(me);
    --room_;
    changed_.notify_all();
  }
  void leave() {
    MutexLock lock(mutex_);
    ++room_;
    changed_.notify_all();
  }
  std::size_t waiting() const {
    MutexLock lock(mutex_);
    return waiting_.size();
  }

 private:
  mutable Mutex mutex_;
  Condition changed_;
  std::multiset<int> waiting_ MILLRACE_GUARDED_BY(mutex_);
  int room_ MILLRACE_GUARDED_BY(mutex_);
};

// Null for kNone.
Engine* engine_of(EngineKind kind, int device);

}  // namespace millrace::sim
