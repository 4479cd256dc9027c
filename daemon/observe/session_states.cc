#include "daemon/observe/session_states.h"

#include <algorithm>
#include <numeric>

namespace millrace {

std::string_view session_state_name(SessionState state) {
  static constexpr std::array<std::string_view, kSessionStates> kNames{
      "idle",        "client", "request",   "filling", "listing",         "shuffling", "read_turn", "reading",
      "read_budget", "host",   "lane_turn", "making",  "decoding_budget", "device",    "settling"};
  return kNames[static_cast<std::size_t>(state)];
}

SessionStates::SessionStates(Clock::time_point now) : begun_(now), last_(now) {
  changes_[0] = {SessionState::kIdle, now};
}

void SessionStates::enter(SessionState state, Clock::time_point now) {
  const Change& newest = changes_[newest_];
  if (newest.state == state) return;
  of(until_newest_, newest.state) += now - newest.since;
  if (remembered_ == kRemembered) {
    const Change& oldest = before(kRemembered - 1);
    of(before_remembered_, oldest.state) += before(kRemembered - 2).since - oldest.since;
  } else {
    ++remembered_;
  }
  newest_ = (newest_ + 1) % kRemembered;
  changes_[newest_] = {state, now};
}

SessionStates::Times SessionStates::times(Clock::time_point now) const {
  Times times = until_newest_;
  of(times, now_in()) += now - changes_[newest_].since;
  return times;
}

void SessionStates::handed_over(std::optional<std::uint32_t> slot, Clock::time_point now) {
  if (slot) {
    if (*slot >= handed_over_.size()) handed_over_.resize(*slot + 1);
    handed_over_[*slot] = {now, now - last_};
  }
  last_ = now;
}

void SessionStates::waited(std::uint32_t slot, std::uint64_t nanoseconds_untrusted) {
  if (slot >= handed_over_.size()) return;
  HandOver& batch = handed_over_[slot];
  ++waits_told_;
  const auto most = static_cast<std::uint64_t>(batch.since_last.count());
  const std::chrono::nanoseconds time(static_cast<std::int64_t>(std::min(nanoseconds_untrusted, most)));
  batch.since_last = {};
  lay(batch.at - time, batch.at);
}

// From the newest change back.
void SessionStates::lay(Clock::time_point from, Clock::time_point to) {
  for (std::size_t steps = 0; steps < remembered_ && from < to; ++steps) {
    const Change& change = before(steps);
    if (change.since >= to) continue;
    const Clock::time_point begin = std::max(from, change.since);
    of(waits_, change.state) += to - begin;
    to = begin;
  }
  if (from < to) spread(to - from);
}

void SessionStates::spread(std::chrono::nanoseconds time) {
  const std::chrono::nanoseconds all =
      std::accumulate(before_remembered_.begin(), before_remembered_.end(), std::chrono::nanoseconds{0});
  if (all.count() <= 0) return;
  const double part = static_cast<double>(time.count()) / static_cast<double>(all.count());
  for (std::size_t i = 0; i < kSessionStates; ++i)
    waits_[i] +=
        std::chrono::nanoseconds(static_cast<std::int64_t>(part * static_cast<double>(before_remembered_[i].count())));
}

}  // namespace millrace
