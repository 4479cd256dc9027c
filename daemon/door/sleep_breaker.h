// For kernels that cannot refuse passed descriptors (before Linux 6.16): the thread that drops the last reference to
// one closes it, and closing a TCP socket with SO_LINGER and unsent data sleeps for as long as its sender likes. A
// signal to the sleeping thread ends that sleep. What sleeps without minding signals is not helped (security_model.md).
//
// The signal is SIGURG, which has a handler that does nothing from the first use on.
#pragma once

#include <chrono>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>

#include "proto/base/result.h"

namespace millrace {

// As long as it lives, no such sleep of the thread that made it lasts longer than a millisecond or two; other system
// calls of the thread may fail with EINTR. Thread-bound(its maker).
class ShortSleeps {
 public:
  ShortSleeps();
  ~ShortSleeps();
  ShortSleeps(const ShortSleeps&) = delete;
  ShortSleeps& operator=(const ShortSleeps&) = delete;

 private:
  std::optional<timer_t> timer_;  // none: the kernel has none left
};

// Looks at all threads of the process again and again, and wakes one that it finds in the same close() or recvmsg()
// twice. For threads that are not ours to guard: gRPC's. Thread-safe.
class SleepBreaker {
 public:
  // `report` is called on the thread here, before the signal, with the socket of a recvmsg() that sleeps.
  static Result<std::unique_ptr<SleepBreaker>> create(std::function<void(int socket)> report,
                                                      std::chrono::milliseconds every = std::chrono::milliseconds(20));
  ~SleepBreaker();
  SleepBreaker(const SleepBreaker&) = delete;
  SleepBreaker& operator=(const SleepBreaker&) = delete;

 private:
  struct State;
  explicit SleepBreaker(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace millrace
