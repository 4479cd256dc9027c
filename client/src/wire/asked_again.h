// What a daemon that was just ending did not grant is asked for again: where a service manager keeps its sockets open,
// the next connection waits there for the next daemon. Where nobody listens any more this costs a refused connect().
#pragma once

#include "client/src/wire/deadline.h"
#include "proto/base/result.h"

namespace millrace {
inline namespace client {

// What `ask()` returns. kUnavailable: it is asked again, twice at most and until `deadline`, and if that does not help
// the first error says what happened. Waits for nothing itself.
template <class Ask>
auto asked_again(Deadline deadline, Ask ask) -> decltype(ask()) {
  constexpr int kMostAgain = 2;
  auto first = ask();
  for (int again = 0; again < kMostAgain; ++again) {
    if (first || first.error().code != Code::kUnavailable || time_left(deadline).count() == 0) break;
    auto next = ask();
    if (next || next.error().code != Code::kUnavailable) return next;
  }
  return first;
}

}  // namespace client
}  // namespace millrace
