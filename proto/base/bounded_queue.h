// A FIFO with a hard bound between threads. A full queue is a state that the pusher sees, not a wait; the popper waits
// until there is something, the queue is closed, or the deadline passes. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "proto/base/mutex.h"

namespace millrace {

template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}

  // false when full or closed; `item` is then left as it was.
  [[nodiscard]] bool try_push(T&& item) MILLRACE_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (closed_ || items_.size() >= capacity_) return false;
      items_.push_back(std::move(item));
    }
    ready_.notify_one();
    return true;
  }

  // The oldest item; nullopt once the queue is closed and empty.
  std::optional<T> pop() MILLRACE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (items_.empty() && !closed_) ready_.wait(mutex_);
    return take();
  }

  // The oldest item; nullopt when there is none until `deadline`, or the queue is closed and empty.
  std::optional<T> pop_until(std::chrono::steady_clock::time_point deadline) MILLRACE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (items_.empty() && !closed_) {
      if (!ready_.wait_until(mutex_, deadline)) break;
    }
    return take();
  }

  // No push succeeds from here on; poppers drain what is left and then get nullopt. Idempotent.
  void close() MILLRACE_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      closed_ = true;
    }
    ready_.notify_all();
  }

  std::size_t size() const MILLRACE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return items_.size();
  }

 private:
  std::optional<T> take() MILLRACE_REQUIRES(mutex_) {
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    return item;
  }

  const std::size_t capacity_;
  mutable Mutex mutex_;
  Condition ready_;
  std::deque<T> items_ MILLRACE_GUARDED_BY(mutex_);
  bool closed_ MILLRACE_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace
