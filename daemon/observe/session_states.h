// Where one session's time goes: in which state it is at each moment, for how long it has been in each, and in which of
// them its program waited for a batch. Which state it is in, the pipeline says (pipeline/session_state.h).
//
//   enter(reading) ── enter(making) ── enter(settling) ── handed_over(slot) ── ... ── waited(slot, 40 ms)
//                            └───────── 40 ms ─────────────────┘ are laid on the states that it was in then
//
// What the program says of its waiting is its own claim. It ends with the hand-over of its batch, and begins no earlier
// than the wait that was told before it ended. So waits never overlap, and no state has more of them than of time.
//
// The last kRemembered changes are remembered. What a wait has before these is spread by the proportions in which the
// session was in its states then, since the end of the wait before.
//
// Thread-bound(control).
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace millrace {

// daemon/doc/session_time.md says what each means, and what to do about it.
enum class SessionState : std::uint8_t {
  kIdle,
  kClient,
  kRequest,
  kFilling,
  kListing,
  kShuffling,
  kReadTurn,
  kReading,
  kReadBudget,
  kHost,
  kLaneTurn,
  kMaking,
  kDecodingBudget,
  kDevice,
  kSettling,
};
constexpr std::size_t kSessionStates = 15;
std::string_view session_state_name(SessionState state);  // "read_turn": as statistics name it, for good

class SessionStates {
 public:
  using Clock = std::chrono::steady_clock;
  using Times = std::array<std::chrono::nanoseconds, kSessionStates>;  // by state

  static constexpr std::size_t kRemembered = 128;  // changes

  // Idle from `now` on.
  explicit SessionStates(Clock::time_point now = Clock::now());

  // Looks at the clock if that is another state than before.
  void enter(SessionState state) {
    if (state != now_in()) enter(state, Clock::now());
  }
  void enter(SessionState state, Clock::time_point now);
  SessionState now_in() const { return changes_[newest_].state; }

  // The batch in that slot is the client's from now on.
  void handed_over(std::uint32_t slot, Clock::time_point now = Clock::now());
  // Its program waited for the batch that was handed over in that slot. Once a batch. Returns the time that was laid.
  std::chrono::nanoseconds waited(std::uint32_t slot, std::uint64_t nanoseconds_untrusted);
  // The program has given the batch in that slot back.
  void released(std::uint32_t slot);

  std::chrono::nanoseconds age(Clock::time_point now) const { return now - begun_; }
  Times times(Clock::time_point now) const;  // add up to age()
  const Times& waits() const { return waits_; }
  std::uint64_t waits_told() const { return waits_told_; }  // batches
  std::uint64_t released() const { return released_; }      // batches
  // All that was told, and the same times the slots that the program held when it waited.
  std::chrono::nanoseconds told() const { return told_; }
  std::chrono::nanoseconds slot_waits() const { return slot_waits_; }
  // What the session did since it handed over its newest batch, or since its beginning, and when that was.
  Times times_since_hand_over(Clock::time_point now) const;
  Clock::time_point newest_hand_over() const { return newest_hand_over_; }

 private:
  struct Change {
    SessionState state = SessionState::kIdle;
    Clock::time_point since;
  };
  struct HandOver {
    Clock::time_point at;
    bool is_told = true;       // how long its program waited for it
    Times times{};             // until then
    bool is_held = false;      // by the program
    std::uint32_t beside = 0;  // slots that the program held when it came
  };

  static std::chrono::nanoseconds& of(Times& times, SessionState state) {
    return times[static_cast<std::size_t>(state)];
  }
  const Change& before(std::size_t steps) const { return changes_[(newest_ + kRemembered - steps) % kRemembered]; }
  void lay(const HandOver& batch, std::chrono::nanoseconds time);
  void spread(std::chrono::nanoseconds time, const Times& over);

  const Clock::time_point begun_;
  std::array<Change, kRemembered> changes_;  // a ring
  std::size_t newest_ = 0, remembered_ = 1;
  Times until_newest_{};               // until the newest change
  Clock::time_point waited_until_;     // the end of the last wait that was laid
  Times at_waited_until_{};            // times() then
  std::vector<HandOver> handed_over_;  // by slot
  Times waits_{};
  std::uint64_t waits_told_ = 0, released_ = 0;
  std::uint32_t held_ = 0;  // slots
  std::chrono::nanoseconds told_{0}, slot_waits_{0};
  Clock::time_point newest_hand_over_;
  Times at_newest_hand_over_{};
};

}  // namespace millrace
