// What waits for the lanes of the CPU backend. Decode jobs are bounded: a full queue is a state that the submitter
// sees. Repairs come first, for each finishes a batch, and always find room: there is at most one a decode job accepted
// before. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <variant>

#include "daemon/backend/backend.h"
#include "proto/base/mutex.h"

namespace millrace {

struct QueuedDecode {
  DecodeJob job;
  std::chrono::steady_clock::time_point since;
};
using QueuedJob = std::variant<QueuedDecode, RepairJob>;

class JobQueue {
 public:
  // `depth`: decode jobs that wait or run.
  explicit JobQueue(std::uint32_t depth) : depth_(depth) {}

  // false when full or closed; the job is then left as it was.
  [[nodiscard]] bool try_push(DecodeJob&& job) MILLRACE_EXCLUDES(mutex_);
  [[nodiscard]] bool try_push(RepairJob&& job) MILLRACE_EXCLUDES(mutex_);

  // Waits for the next; nullopt once the queue is closed and empty. A decode job counts until finished() is called.
  std::optional<QueuedJob> pop() MILLRACE_EXCLUDES(mutex_);
  void finished() MILLRACE_EXCLUDES(mutex_);

  // Nothing comes in from here on; what is left can still be popped.
  void close() MILLRACE_EXCLUDES(mutex_);
  bool closed() const MILLRACE_EXCLUDES(mutex_);

 private:
  const std::uint32_t depth_;
  mutable Mutex mutex_;
  Condition ready_;
  std::deque<QueuedDecode> decodes_ MILLRACE_GUARDED_BY(mutex_);
  std::deque<RepairJob> repairs_ MILLRACE_GUARDED_BY(mutex_);
  std::uint32_t in_it_ MILLRACE_GUARDED_BY(mutex_) = 0;        // decode jobs
  std::uint64_t repair_room_ MILLRACE_GUARDED_BY(mutex_) = 0;  // decode jobs accepted less repairs accepted
  bool closed_ MILLRACE_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace
