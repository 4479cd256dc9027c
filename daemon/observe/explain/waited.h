// How long a session's program waited between two looks, by state. A pure function.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <numeric>

#include "daemon/observe/explain/looks.h"

namespace millrace {

using SecondsByState = std::array<double, kSessionStates>;

struct Waited {
  double seconds = 0;      // between the looks
  SecondsByState times{};  // of the session, by state
  SecondsByState waits{};  // of the program
  bool told = false;       // false: its client says nothing, so all of the session's work is taken for waiting
  double waited = 0;       // the sum of waits; no more than `seconds`

  double share() const { return seconds <= 0 ? 0 : waited / seconds; }
  double time(SessionState state) const { return times[static_cast<std::size_t>(state)]; }
  double wait(SessionState state) const { return waits[static_cast<std::size_t>(state)]; }
};

// States in which the session does nothing for its program, which has or names no further batch.
constexpr bool is_programs_own(SessionState state) {
  return state == SessionState::kIdle || state == SessionState::kClient || state == SessionState::kRequest;
}

inline Waited waited_between(const SessionLook& then, const SessionLook& now) {
  using Seconds = std::chrono::duration<double>;
  // A session that has just opened may be younger than the look.
  Waited waited{.seconds = std::max(0.0, Seconds(now.at - then.at).count())};
  waited.told = now.waits_told > 0 || now.released == 0;
  for (std::size_t i = 0; i < kSessionStates; ++i) {
    waited.times[i] = std::max(0.0, Seconds(now.times[i] - then.times[i]).count());
    const double told = std::max(0.0, Seconds(now.waits[i] - then.waits[i]).count());
    const bool own = is_programs_own(static_cast<SessionState>(i));
    waited.waits[i] = waited.told ? told : own ? 0 : waited.times[i];
  }
  // What was told now may have begun before.
  const double sum = std::accumulate(waited.waits.begin(), waited.waits.end(), 0.0);
  waited.waited = std::clamp(sum, 0.0, std::max(0.0, waited.seconds));
  if (sum > waited.waited)
    for (double& wait : waited.waits) wait *= waited.waited / sum;
  return waited;
}

}  // namespace millrace
