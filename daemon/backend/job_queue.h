// What waits for the lanes of a backend. It is bounded: a full queue is a state that the submitter sees.
// Thread-safe.
#pragma once

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
  // `depth`: jobs that wait or run.
  explicit JobQueue(std::uint32_t depth) : depth_(depth) {}

  // false when full or closed; the job is then left as it was.
  [[nodiscard]] bool try_push(DecodeJob&& job) MILLRACE_EXCLUDES(mutex_);

  // Waits for the next; nullopt once the queue is closed and empty. A job counts until finished() is called.
  std::optional<QueuedDecode> pop() MILLRACE_EXCLUDES(mutex_);
  void finished() MILLRACE_EXCLUDES(mutex_);

  bool empty() const MILLRACE_EXCLUDES(mutex_);  // no job waits

  // Nothing comes in from here on; what is left can still be popped.
  void close() MILLRACE_EXCLUDES(mutex_);
  bool closed() const MILLRACE_EXCLUDES(mutex_);

 private:
  const std::uint32_t depth_;
  mutable Mutex mutex_;
  Condition ready_;
  std::deque<QueuedDecode> jobs_ MILLRACE_GUARDED_BY(mutex_);
  std::uint32_t in_it_ MILLRACE_GUARDED_BY(mutex_) = 0;  // waiting or running
  bool closed_ MILLRACE_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace
