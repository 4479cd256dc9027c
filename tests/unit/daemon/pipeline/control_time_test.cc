#include "daemon/pipeline/turns/control_time.h"

#include <catch2/catch.hpp>
#include <memory>
#include <unordered_map>

#include "daemon/model/caller.h"

namespace millrace {
namespace {

constexpr UserId kBusyUser{1}, kQuietUser{2};
using std::chrono::milliseconds;

ControlTime::Clock::time_point fake_now{};
ControlTime::Clock::time_point read_fake_clock() {
  return fake_now;
}

std::shared_ptr<const Caller> session_of(UserId user) {
  Caller made;
  made.uid = raw(user);
  return std::make_shared<const Caller>(made);
}

void do_for(ControlTime& time, UserId user, std::chrono::nanoseconds span) {
  const auto working = time.work_for(user);
  fake_now += span;
}

std::unordered_map<UserId, std::uint64_t> taken(ControlTime& time,
                                                ControlTime::Stage stage = ControlTime::Stage::kReading) {
  std::unordered_map<UserId, std::uint64_t> all;
  time.take(stage, [&](UserId user, std::uint64_t nanoseconds) { all[user] += nanoseconds; });
  return all;
}

constexpr std::uint64_t kMillisecond = 1'000'000;

}  // namespace

TEST_CASE("what sessions cost the thread is by the clock on the wall, and no more than its CPU time", "[pipeline]") {
  const UserShares shares;
  ControlTime time(shares, read_fake_clock);
  const auto much = std::make_shared<SessionCosts>(), little = std::make_shared<SessionCosts>();
  const auto cost_of = [](const SessionCosts& costs) { return costs.at(SessionCosts::Clock::now()).control_cpu; };
  {
    const auto working = time.work_for(kBusyUser, much);
    fake_now += milliseconds(3);
    const auto beside = time.work_for(kQuietUser, little);
    fake_now += milliseconds(1);
  }
  time.settle();

  CHECK(cost_of(*little) > std::chrono::nanoseconds{0});
  CHECK(cost_of(*much) > 2 * cost_of(*little));
  CHECK(cost_of(*much) + cost_of(*little) <= thread_cpu_time());
}

TEST_CASE("time of the control thread is that user's for whom it worked, and is told once", "[pipeline]") {
  UserShares shares;
  shares.joined(session_of(kBusyUser)), shares.joined(session_of(kQuietUser));
  ControlTime time(shares, read_fake_clock);

  {
    const auto his = time.work_for(kBusyUser);
    fake_now += milliseconds(3);
    do_for(time, kQuietUser, milliseconds(1));
    fake_now += milliseconds(2);
  }
  fake_now += milliseconds(2);  // nobody's
  time.add(kQuietUser, milliseconds(30));

  auto had = taken(time);
  CHECK(had[kBusyUser] == 5 * kMillisecond);
  CHECK(had[kQuietUser] == 31 * kMillisecond);
  CHECK(had.size() == 2);
  CHECK(taken(time).empty());
  CHECK(taken(time, ControlTime::Stage::kMaking) == had);
}

TEST_CASE("a user who has more than his part of a busy control thread waits, beside others", "[pipeline]") {
  UserShares shares;
  ControlTime time(shares, read_fake_clock);
  shares.joined(session_of(kBusyUser));

  do_for(time, kBusyUser, milliseconds(40));
  CHECK_FALSE(time.must_wait(kBusyUser));  // nobody else is there

  shares.joined(session_of(kQuietUser));
  fake_now += milliseconds(1'000);
  do_for(time, kBusyUser, milliseconds(40));
  CHECK(time.must_wait(kBusyUser));
  CHECK_FALSE(time.must_wait(kQuietUser));
  fake_now += milliseconds(10);
  CHECK(time.must_wait(kBusyUser));
  fake_now += milliseconds(100);
  CHECK_FALSE(time.must_wait(kBusyUser));
}

TEST_CASE("who had the control thread for himself for long waits no longer than for a moment once another comes",
          "[pipeline]") {
  UserShares shares;
  ControlTime time(shares, read_fake_clock);
  shares.joined(session_of(kBusyUser));
  do_for(time, kBusyUser, std::chrono::hours(1));
  shares.joined(session_of(kQuietUser));

  CHECK(time.must_wait(kBusyUser));
  fake_now += std::chrono::seconds(1);
  CHECK_FALSE(time.must_wait(kBusyUser));
}

TEST_CASE("who leaves and comes back finds there what he had too much of the control thread", "[pipeline]") {
  UserShares shares;
  ControlTime time(shares, read_fake_clock);
  shares.joined(session_of(kQuietUser));
  const auto session = session_of(kBusyUser);
  shares.joined(session);
  do_for(time, kBusyUser, milliseconds(100));

  shares.left(session);
  CHECK(taken(time)[kBusyUser] == 100 * kMillisecond);
  shares.joined(session);
  CHECK(time.must_wait(kBusyUser));

  shares.left(session);
  fake_now += std::chrono::seconds(1);
  taken(time), taken(time, ControlTime::Stage::kMaking);
  shares.joined(session);
  CHECK_FALSE(time.must_wait(kBusyUser));
}

TEST_CASE("a user who needs half of the control thread does not wait", "[pipeline]") {
  UserShares shares;
  ControlTime time(shares, read_fake_clock);
  shares.joined(session_of(kBusyUser)), shares.joined(session_of(kQuietUser));

  for (int i = 0; i < 100; ++i) {
    do_for(time, kBusyUser, milliseconds(1));
    fake_now += milliseconds(1);
    REQUIRE_FALSE(time.must_wait(kBusyUser));
  }
}

TEST_CASE("of the control thread's time a user who has gone leaves nothing behind", "[pipeline]") {
  UserShares shares;
  ControlTime time(shares, read_fake_clock);
  const auto session = session_of(kBusyUser);
  shares.joined(session);
  {
    const auto working = time.work_for(kBusyUser);
    fake_now += milliseconds(1);
    shares.left(session);
  }
  time.add(kBusyUser, milliseconds(1));

  CHECK(taken(time).empty());
}

}  // namespace millrace
