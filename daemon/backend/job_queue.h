// What waits for the lanes of a backend: urgent jobs first, else first in, first out. It is bounded: a full queue is a
// state that the submitter sees.
// Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

#include "daemon/backend/backend.h"
#include "proto/base/mutex.h"

namespace millrace {

struct QueuedDecode {
  DecodeJob job;
  std::chrono::steady_clock::time_point since;
};

class JobQueue {
 public:
  // `depth`: jobs that wait or run. `urgent`: so many more, of urgent ones alone.
  explicit JobQueue(std::uint32_t depth, std::uint32_t urgent = 0) : depth_(depth), most_(depth + urgent) {}

  // false when full or closed; the job is then left as it was.
  [[nodiscard]] bool try_push(DecodeJob&& job) MILLRACE_EXCLUDES(mutex_);

  // Waits for the next; nullopt once the queue is closed and empty. A job counts until finished() is called.
  std::optional<QueuedDecode> pop() MILLRACE_EXCLUDES(mutex_);
  void finished() MILLRACE_EXCLUDES(mutex_);

  bool empty() const MILLRACE_EXCLUDES(mutex_);                                    // no job waits
  bool has_urgent() const { return urgent_.load(std::memory_order_relaxed) > 0; }  // one waits

  // Nothing comes in from here on; what is left can still be popped.
  void close() MILLRACE_EXCLUDES(mutex_);
  bool closed() const MILLRACE_EXCLUDES(mutex_);

 private:
  const std::uint32_t depth_, most_;
  mutable Mutex mutex_;
  Condition ready_;
  std::deque<QueuedDecode> jobs_ MILLRACE_GUARDED_BY(mutex_);
  std::uint32_t in_it_ MILLRACE_GUARDED_BY(mutex_) = 0;  // waiting or running
  bool closed_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::atomic<std::uint32_t> urgent_{0};  // jobs that wait. Written with the mutex held
};

}  // namespace millrace
