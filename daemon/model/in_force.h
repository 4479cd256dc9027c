// A value that an administrator may change while the daemon runs, read by threads that do not wait for each other: the
// last one that was put in force. Copies show the same value, so that a part made early sees what changes late.
// Thread-safe: a lock for as long as copying the value takes.
#pragma once

#include <memory>
#include <utility>

#include "proto/base/mutex.h"

namespace millrace {

template <class T>
class InForce {
 public:
  InForce(T value = {}) : shared_(std::make_shared<Shared>(std::move(value))) {}  // NOLINT: a value is in force

  T now() const {
    MutexLock lock(shared_->mutex);
    return shared_->value;
  }
  // From the next now() on, of every copy.
  void put(T value) {
    MutexLock lock(shared_->mutex);
    std::swap(shared_->value, value);
  }

 private:
  struct Shared {
    explicit Shared(T first) : value(std::move(first)) {}
    Mutex mutex;
    T value MILLRACE_GUARDED_BY(mutex);
  };
  std::shared_ptr<Shared> shared_;  // shared by the copies
};

}  // namespace millrace
