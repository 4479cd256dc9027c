#include "client/cli/interrupt.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace millrace::cli {
namespace {

// Writer: the signal's handler. Reader: interrupted(). A flag that a handler may set, which needs this type and this
// scope.
volatile sig_atomic_t was_interrupted = 0;

void note(int) {
  was_interrupted = 1;
}

}  // namespace

void watch_for_interrupt() {
  struct sigaction action {};
  action.sa_handler = note;  // without SA_RESTART, so that waits end
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() {
  return was_interrupted != 0;
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
