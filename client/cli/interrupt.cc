#include "client/cli/interrupt.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

namespace millrace::cli {
namespace {

// Writer: the signal's handler, which may touch lock-free atomics alone. Readers: any thread.
std::atomic<bool> was_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void note(int) {
  was_interrupted = true;
}

}  // namespace

void watch_for_interrupt() {
  struct sigaction action {};
  action.sa_handler = note;  // without SA_RESTART, so that waits end
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() {
  return was_interrupted;
}

bool wait_unless_interrupted(std::chrono::milliseconds time) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  while (!interrupted()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return true;
    // In pieces, because a signal may come between the look and the wait.
    ::poll(nullptr, 0, static_cast<int>(std::min(left, kLookEvery).count()));
  }
  return false;
}

}  // namespace millrace::cli
