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

SessionStates::SessionStates(Clock::time_point now) : begun_(now), waited_until_(now), newest_hand_over_(now) {
  changes_[0] = {SessionState::kIdle, now};
}

void SessionStates::enter(SessionState state, Clock::time_point now) {
  const Change& newest = changes_[newest_];
  if (newest.state == state) return;
  of(until_newest_, newest.state) += now - newest.since;
  remembered_ = std::min(remembered_ + 1, kRemembered);
  newest_ = (newest_ + 1) % kRemembered;
  changes_[newest_] = {state, now};
}

SessionStates::Times SessionStates::times(Clock::time_point now) const {
  Times times = until_newest_;
  of(times, now_in()) += now - changes_[newest_].since;
  return times;
}

void SessionStates::handed_over(std::uint32_t slot, Clock::time_point now) {
  if (slot >= handed_over_.size()) handed_over_.resize(slot + 1);
  released(slot);  // it was, if only unheard of
  at_newest_hand_over_ = times(now);
  newest_hand_over_ = now;
  handed_over_[slot] = {now, false, at_newest_hand_over_, true, held_};
  ++held_;
}

void SessionStates::released(std::uint32_t slot) {
  if (slot >= handed_over_.size() || !handed_over_[slot].is_held) return;
  handed_over_[slot].is_held = false;
  --held_;
  ++released_;
}

SessionStates::Times SessionStates::times_since_hand_over(Clock::time_point now) const {
  Times since = times(now);
  for (std::size_t i = 0; i < kSessionStates; ++i) since[i] -= at_newest_hand_over_[i];
  return since;
}

std::chrono::nanoseconds SessionStates::waited(std::uint32_t slot, std::uint64_t nanoseconds_untrusted) {
  constexpr std::chrono::nanoseconds kNone{0};
  if (slot >= handed_over_.size() || handed_over_[slot].is_told) return kNone;
  HandOver& batch = handed_over_[slot];
  batch.is_told = true;
  ++waits_told_;
  const std::chrono::nanoseconds most = batch.at - waited_until_;
  if (most.count() <= 0 || nanoseconds_untrusted == 0) return kNone;  // it was there when the wait before ended
  const auto bounded = std::min(nanoseconds_untrusted, static_cast<std::uint64_t>(most.count()));
  const std::chrono::nanoseconds time(static_cast<std::int64_t>(bounded));
  lay(batch, time);
  told_ += time;
  slot_waits_ += time * batch.beside;
  waited_until_ = batch.at;
  at_waited_until_ = batch.times;
  return time;
}

// From the newest change back to the end of the wait before. `left`: what is not remembered of that time.
void SessionStates::lay(const HandOver& batch, std::chrono::nanoseconds time) {
  Times left = batch.times;
  for (std::size_t i = 0; i < kSessionStates; ++i) left[i] -= at_waited_until_[i];
  const Clock::time_point from = batch.at - time;
  Clock::time_point end = batch.at;
  for (std::size_t steps = 0; steps < remembered_ && end > waited_until_; ++steps) {
    const Change& change = before(steps);
    if (change.since >= end) continue;
    const Clock::time_point begin = std::max(change.since, waited_until_);
    of(left, change.state) -= end - begin;
    if (end > from) of(waits_, change.state) += end - std::max(begin, from);
    end = begin;
  }
  if (end > from) spread(end - from, left);
}

void SessionStates::spread(std::chrono::nanoseconds time, const Times& over) {
  const std::chrono::nanoseconds all = std::accumulate(over.begin(), over.end(), std::chrono::nanoseconds{0});
  if (all.count() <= 0) return;
  const double part = static_cast<double>(time.count()) / static_cast<double>(all.count());
  for (std::size_t i = 0; i < kSessionStates; ++i)
    waits_[i] += std::chrono::nanoseconds(static_cast<std::int64_t>(part * static_cast<double>(over[i].count())));
}

}  // namespace millrace
