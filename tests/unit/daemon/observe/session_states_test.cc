// A session's time by state, and what its program says of its waiting.
#include <catch2/catch.hpp>
#include <limits>
#include <numeric>
#include <set>

#include "daemon/observe/session_states.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using enum SessionState;

const SessionStates::Clock::time_point kBegin{1000s};

std::chrono::nanoseconds of(const SessionStates::Times& times, SessionState state) {
  return times[static_cast<std::size_t>(state)];
}

std::chrono::nanoseconds sum_of(const SessionStates::Times& times) {
  return std::accumulate(times.begin(), times.end(), std::chrono::nanoseconds{0});
}

// 10 ms of reading, 30 ms of making, handed over in `slot`; returns when.
SessionStates::Clock::time_point make_batch(SessionStates& states, SessionStates::Clock::time_point at,
                                            std::uint32_t slot) {
  states.enter(kReading, at);
  states.enter(kMaking, at + 10ms);
  states.handed_over(slot, at + 40ms);
  return at + 40ms;
}

}  // namespace

TEST_CASE("every state has a name of its own", "[observe]") {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kSessionStates; ++i) names.insert(session_state_name(static_cast<SessionState>(i)));
  REQUIRE(names.size() == kSessionStates);
  REQUIRE(session_state_name(kIdle) == "idle");
  REQUIRE(session_state_name(kReadTurn) == "read_turn");
  REQUIRE(session_state_name(kDecodingBudget) == "decoding_budget");
  REQUIRE(session_state_name(kSettling) == "settling");
}

TEST_CASE("a session's time by state adds up to its age, the state that lasts included", "[observe]") {
  SessionStates states(kBegin);
  states.enter(kReading, kBegin + 5ms);
  states.enter(kReading, kBegin + 6ms);
  states.enter(kMaking, kBegin + 15ms);
  states.enter(kReading, kBegin + 45ms);

  const SessionStates::Times times = states.times(kBegin + 50ms);
  CHECK(of(times, kIdle) == 5ms);
  CHECK(of(times, kReading) == 15ms);
  CHECK(of(times, kMaking) == 30ms);
  CHECK(sum_of(times) == states.age(kBegin + 50ms));
  CHECK(states.now_in() == kReading);
}

TEST_CASE("a wait is laid on what the session did right before the batch was handed over", "[observe]") {
  SessionStates states(kBegin);
  const auto at = make_batch(states, kBegin, 3);
  states.enter(kClient, at);
  states.enter(kReading, at + 70ms);  // for the next one, before the client tells
  states.waited(3, std::uint64_t{35'000'000});

  CHECK(of(states.waits(), kMaking) == 30ms);
  CHECK(of(states.waits(), kReading) == 5ms);
  CHECK(sum_of(states.waits()) == 35ms);
  CHECK(states.waits_told() == 1);
}

TEST_CASE("of what a client claims no more counts than since its wait before, and once", "[observe]") {
  constexpr std::uint64_t kForever = std::numeric_limits<std::uint64_t>::max();
  SessionStates states(kBegin);
  const auto first = make_batch(states, kBegin, 0);
  states.waited(0, kForever);
  CHECK(sum_of(states.waits()) == 40ms);

  const auto second = make_batch(states, first, 1);
  states.waited(1, kForever);
  states.waited(1, kForever);
  states.waited(7, kForever);  // nothing was handed over there
  CHECK(sum_of(states.waits()) == 80ms);
  CHECK(sum_of(states.waits()) == states.age(second));
  CHECK(of(states.waits(), kReading) == 20ms);
}

TEST_CASE("a wait for one batch counts whole though others were handed over meanwhile", "[observe]") {
  SessionStates states(kBegin);
  states.enter(kReading, kBegin);
  states.handed_over(1, kBegin + 99ms);  // submitted later, and there before
  states.handed_over(0, kBegin + 100ms);
  SECTION("given back in the order of the waits") {
    states.waited(0, std::uint64_t{100'000'000});
    states.waited(1, 0);
  }
  SECTION("given back in the other order") {
    states.waited(1, 0);
    states.waited(0, std::uint64_t{100'000'000});
  }

  CHECK(of(states.waits(), kReading) == 100ms);
  CHECK(sum_of(states.waits()) == 100ms);
  CHECK(states.waits_told() == 2);
}

TEST_CASE("waits that overlap by what their client claims are laid once", "[observe]") {
  SessionStates states(kBegin);
  states.enter(kReading, kBegin);
  states.handed_over(0, kBegin + 50ms);
  states.handed_over(1, kBegin + 60ms);
  states.waited(1, std::uint64_t{60'000'000});
  states.waited(0, std::uint64_t{50'000'000});

  CHECK(sum_of(states.waits()) == 60ms);
}

TEST_CASE("a wait is spread over its own time alone where none of its changes is remembered", "[observe]") {
  SessionStates states(kBegin);
  const auto listed = kBegin + 60s;
  states.enter(kListing, kBegin);
  const auto first = make_batch(states, listed, 0);
  states.waited(0, std::uint64_t{40'000'000});
  const auto second = make_batch(states, first, 1);
  auto at = second;
  for (std::size_t i = 0; i < SessionStates::kRemembered; ++i) {
    states.enter(kLaneTurn, at);
    states.enter(kDevice, at + 1ms);
    at += 2ms;
  }
  states.waited(1, std::uint64_t{40'000'000});

  CHECK(of(states.waits(), kListing) == 0ms);
  CHECK(of(states.waits(), kDevice) == 0ms);
  CHECK(of(states.waits(), kReading) == 20ms);
  CHECK(of(states.waits(), kMaking) == 60ms);
}

TEST_CASE("a slot that is handed over twice has a wait for each of its batches", "[observe]") {
  SessionStates states(kBegin);
  states.enter(kReading, kBegin);
  states.handed_over(0, kBegin + 10ms);
  states.waited(0, 4'000'000);
  states.enter(kMaking, kBegin + 10ms);
  states.handed_over(0, kBegin + 30ms);
  states.waited(0, 5'000'000);
  states.waited(0, 5'000'000);  // once a batch

  CHECK(of(states.waits(), kReading) == 4ms);
  CHECK(of(states.waits(), kMaking) == 5ms);
  CHECK(states.waits_told() == 2);
}

TEST_CASE("a batch of which nothing was told lends its slot's next one no time", "[observe]") {
  SessionStates states(kBegin);
  states.enter(kReading, kBegin);
  states.handed_over(0, kBegin + 10ms);
  states.enter(kMaking, kBegin + 10ms);
  states.handed_over(0, kBegin + 30ms);
  states.waited(0, 20'000'000);

  CHECK(of(states.waits(), kReading) == 0ms);
  CHECK(of(states.waits(), kMaking) == 20ms);
  CHECK(states.waits_told() == 1);
}

TEST_CASE("what a wait has before all remembered changes goes by the proportions of that time", "[observe]") {
  SessionStates states(kBegin);
  auto at = kBegin;
  // Three parts of reading to one of making, until nothing of it is remembered.
  for (std::size_t i = 0; i < SessionStates::kRemembered; ++i) {
    states.enter(kReading, at);
    states.enter(kMaking, at + 3ms);
    at += 4ms;
  }
  const auto old = at;
  for (std::size_t i = 0; i < SessionStates::kRemembered / 2; ++i) {
    states.enter(kLaneTurn, at);
    states.enter(kDevice, at + 1ms);
    at += 2ms;
  }
  states.handed_over(0, at);
  const auto remembered = at - old;
  const auto whole = at - kBegin;
  states.waited(0, static_cast<std::uint64_t>(whole.count()));

  CHECK(of(states.waits(), kLaneTurn) == remembered / 2);
  CHECK(of(states.waits(), kDevice) == remembered / 2);
  const auto reading = std::chrono::duration<double>(of(states.waits(), kReading)).count();
  const auto making = std::chrono::duration<double>(of(states.waits(), kMaking)).count();
  CHECK(reading == Approx(3 * making).epsilon(0.001));
  CHECK(std::chrono::duration<double>(sum_of(states.waits())).count() ==
        Approx(std::chrono::duration<double>(whole).count()).epsilon(1e-6));
}

}  // namespace millrace
