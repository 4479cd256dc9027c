// CPU time as the kernel counts it: of a thread, of this process, and of the processes that it has started.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>

#include "proto/base/unique_fd.h"

namespace millrace {

// Of the calling thread so far. A system call: some 200 ns.
std::chrono::nanoseconds thread_cpu_time();
// Of a process that has not been reaped; nullopt: there is none.
std::optional<std::chrono::nanoseconds> process_cpu_time(pid_t pid);
// Of this process, of children that were waited for, and of those that child_started() was told of. It never falls.
// Thread-safe.
std::chrono::nanoseconds cpu_time_with_children();

// A process was started, or is about to be reaped, by which the kernel counts it among those that were waited for.
// Thread-safe.
void child_started(pid_t pid);
void child_ended(pid_t pid);

// What a thread uses, part by part. Thread-bound(the thread that asks first).
class ThreadStopwatch {
 public:
  // Since the last call, or since the thread began.
  std::chrono::nanoseconds lap() {
    const std::chrono::nanoseconds now = thread_cpu_time(), used = now - until_;
    until_ = now;
    return used;
  }

 private:
  std::chrono::nanoseconds until_{0};
};

// How long a thread was ready to run and had no processor. Thread-bound(the thread that made it).
class RunnableTime {
 public:
  RunnableTime();

  // Since it was last asked and answered. Looks at most once in 100 ms: nothing in between, nor where the kernel does
  // not tell.
  std::chrono::nanoseconds lap();

 private:
  std::optional<std::chrono::nanoseconds> read() const;

  const UniqueFd schedstat_;  // the thread's
  std::chrono::steady_clock::time_point looked_{};
  std::chrono::nanoseconds until_{0};
};

}  // namespace millrace
