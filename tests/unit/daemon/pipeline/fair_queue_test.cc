#include <catch2/catch.hpp>

#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "daemon/pipeline/turns/fair_queue.h"

namespace millrace {
namespace {

const UserShares kAlike;
constexpr Owner kOne{UserId{1000}, SessionId{1}};
constexpr Owner kTwo{UserId{2000}, SessionId{2}};

std::vector<int> drain(FairQueue<int>& queue) {
  std::vector<int> taken;
  while (const std::optional<int> item = queue.take()) taken.push_back(*item);
  return taken;
}

// One who always has something waiting, at so much a turn.
struct Busy {
  Owner owner;
  std::uint64_t cost;
  Priority priority = Priority::kNormal;
  std::uint32_t turns = 0;
};

void serve(FairQueue<Busy*>& queue, int turns) {
  for (int i = 0; i < turns; ++i) {
    Busy* const busy = *queue.take();
    ++busy->turns;
    queue.charge(busy->owner, busy->priority, busy->cost);
    queue.put_back(busy->owner, busy->priority, busy);
  }
}

void push(FairQueue<Busy*>& queue, Busy& busy) {
  queue.push(busy.owner, busy.priority, &busy);
}

std::shared_ptr<const Caller> caller(UserId user, std::vector<gid_t> groups = {}) {
  return std::make_shared<const Caller>(Caller{.uid = raw(user), .groups = std::move(groups)});
}

TEST_CASE("one session's items come first in, first out", "[pipeline]") {
  FairQueue<int> queue(kAlike);
  for (int i : {1, 2, 3}) queue.push(kOne, Priority::kNormal, i);

  REQUIRE(queue.size() == 3);
  REQUIRE(drain(queue) == std::vector{1, 2, 3});
  REQUIRE(queue.empty());
}

TEST_CASE("those that are due first are told from those that are not", "[pipeline]") {
  FairQueue<int> queue(kAlike);
  const auto any_first = [&](int wanted) { return queue.any_first([&](int item) { return item == wanted; }); };
  CHECK_FALSE(any_first(1));
  queue.push(kOne, Priority::kNormal, 1);
  queue.push(kOne, Priority::kNormal, 10);
  queue.push(kTwo, Priority::kHigh, 2);
  CHECK(any_first(1));
  CHECK(any_first(2));
  CHECK_FALSE(any_first(10));

  queue.charge(kTwo, Priority::kHigh, 100);
  CHECK(any_first(1));
  CHECK_FALSE(any_first(2));
  queue.charge(kOne, Priority::kNormal, 200);
  CHECK_FALSE(any_first(1));
  CHECK(any_first(2));
}

TEST_CASE("users take turns however much one of them has queued", "[pipeline]") {
  FairQueue<int> queue(kAlike);
  for (int i = 10; i < 15; ++i) queue.push(kOne, Priority::kNormal, i);
  queue.push(kTwo, Priority::kNormal, 20);

  REQUIRE(drain(queue) == std::vector{10, 20, 11, 12, 13, 14});
}

TEST_CASE("a user's sessions take turns", "[pipeline]") {
  FairQueue<int> queue(kAlike);
  for (int i = 10; i < 13; ++i) queue.push(kOne, Priority::kNormal, i);
  for (int i = 20; i < 23; ++i) queue.push({kOne.user, SessionId{7}}, Priority::kNormal, i);

  REQUIRE(drain(queue) == std::vector{10, 20, 11, 21, 12, 22});
}

TEST_CASE("a user with ten sessions gets no more than one with a single session", "[pipeline]") {
  FairQueue<Busy*> queue(kAlike);
  std::vector<Busy> many;
  for (std::uint64_t i = 0; i < 10; ++i) many.push_back({{UserId{1000}, SessionId{10 + i}}, 5});
  Busy single{kTwo, 5};
  for (Busy& busy : many) queue.push(busy.owner, Priority::kNormal, &busy);
  queue.push(kTwo, Priority::kNormal, &single);

  serve(queue, 2000);

  REQUIRE(single.turns == 1000);
  for (const Busy& busy : many) REQUIRE(busy.turns == 100);
}

TEST_CASE("a session whose items cost ten times as much gets a tenth as many", "[pipeline]") {
  const bool of_one_user = GENERATE(true, false);
  FairQueue<Busy*> queue(kAlike);
  Busy dear{kOne, 1'000};
  Busy cheap{{of_one_user ? kOne.user : kTwo.user, SessionId{2}}, 100};
  queue.push(dear.owner, Priority::kNormal, &dear);
  queue.push(cheap.owner, Priority::kNormal, &cheap);

  serve(queue, 1'100);

  REQUIRE(dear.turns == 100);
  REQUIRE(cheap.turns == 1'000);
}

TEST_CASE("who is back after a moment still owes for what was taken before", "[pipeline]") {
  FairQueue<int> queue(kAlike);
  queue.push(kOne, Priority::kNormal, 10);
  for (int i = 20; i < 25; ++i) queue.push(kTwo, Priority::kNormal, i);

  REQUIRE(queue.take() == 10);
  queue.charge(kOne, Priority::kNormal, 300);
  queue.push(kOne, Priority::kNormal, 11);

  for (int i = 20; i < 23; ++i) {
    REQUIRE(queue.take() == i);
    queue.charge(kTwo, Priority::kNormal, 100);
  }
  REQUIRE(queue.take() == 11);
}

TEST_CASE("who comes late is served next, but not for the time that it was not there", "[pipeline]") {
  FairQueue<Busy*> queue(kAlike);
  Busy early{kOne, 10}, late{kTwo, 10};
  queue.push(early.owner, Priority::kNormal, &early);
  serve(queue, 1'000);

  queue.push(late.owner, Priority::kNormal, &late);
  serve(queue, 1);
  REQUIRE(late.turns == 1);
  serve(queue, 99);

  REQUIRE(late.turns == 50);
}

TEST_CASE("debts are forgotten when a stage finds nothing left to do", "[pipeline]") {
  FairQueue<int> queue(kAlike);
  queue.push(kOne, Priority::kNormal, 1);
  REQUIRE(queue.take() == 1);
  queue.charge(kOne, Priority::kNormal, 1'000'000);
  REQUIRE_FALSE(queue.take());

  queue.push(kOne, Priority::kNormal, 2);
  queue.push(kTwo, Priority::kNormal, 3);
  queue.push(kTwo, Priority::kNormal, 4);

  REQUIRE(drain(queue) == std::vector{2, 3, 4});
}

TEST_CASE("high, normal and low get 8, 2 and 1 parts of their user's own, and nothing of another's", "[pipeline]") {
  FairQueue<Busy*> queue(kAlike);
  Busy high{kOne, 16, Priority::kHigh}, normal{{kOne.user, SessionId{5}}, 16},
      low{{kOne.user, SessionId{6}}, 16, Priority::kLow};
  Busy other{kTwo, 16, Priority::kLow};
  for (Busy* busy : {&low, &normal, &high, &other}) push(queue, *busy);

  serve(queue, 2 * 1'100);

  CHECK(other.turns == 1'100);
  CHECK(high.turns == 800);
  CHECK(normal.turns == 200);
  CHECK(low.turns == 100);
}

TEST_CASE("of one user's work that nothing was done of, the urgent goes first", "[pipeline]") {
  FairQueue<int> queue(kAlike);
  queue.push(kOne, Priority::kLow, 1);
  queue.push(kOne, Priority::kNormal, 2);
  queue.push(kOne, Priority::kHigh, 3);

  REQUIRE(drain(queue) == std::vector{3, 2, 1});
}

TEST_CASE("a single request among others' endless work is next, whatever they ask for", "[pipeline]") {
  FairQueue<Busy*> queue(kAlike);
  std::vector<Busy> endless;
  for (std::uint32_t i = 0; i < 5; ++i) endless.push_back({{UserId{i}, SessionId{i}}, 100 + i, Priority::kHigh});
  for (Busy& busy : endless) push(queue, busy);
  serve(queue, 1'000);
  Busy single{kTwo, 1, Priority::kLow};

  push(queue, single);

  REQUIRE(*queue.take() == &single);
}

TEST_CASE("a user of weight 3 has three times as much as one of weight 1, whatever his sessions cost", "[pipeline]") {
  UserShares shares(FairWeights{.users = {{raw(kOne.user), 3}}});
  shares.joined(caller(kOne.user));
  shares.joined(caller(kTwo.user));
  FairQueue<Busy*> queue(shares);
  Busy heavy{kOne, 30}, light{kTwo, 300};
  push(queue, heavy), push(queue, light);

  serve(queue, 31'000);

  CHECK(heavy.turns == 30'000);
  CHECK(light.turns == 1'000);
}

TEST_CASE("what a user costs beside his items is his, whichever session it was for", "[pipeline]") {
  FairQueue<Busy*> queue(kAlike);
  Busy cheap{kOne, 1}, usual{kTwo, 10};
  push(queue, cheap), push(queue, usual);

  for (int i = 0; i < 1'000; ++i) {
    const std::uint64_t before = cheap.turns;
    serve(queue, 1);
    if (cheap.turns > before) queue.charge(kOne.user, 9);
  }

  CHECK(cheap.turns == 500);
  CHECK(usual.turns == 500);
}

TEST_CASE("weights that change count from then on", "[pipeline]") {
  UserShares shares;
  shares.joined(caller(kOne.user));
  shares.joined(caller(kTwo.user, {100, 200}));
  FairQueue<Busy*> queue(shares);
  Busy one{kOne, 40}, two{kTwo, 40};
  push(queue, one), push(queue, two);
  serve(queue, 100);
  REQUIRE(one.turns == 50);

  shares.set_weights({.users = {}, .groups = {{100, 4}, {200, 2}, {300, 9}}});
  serve(queue, 500);

  CHECK(one.turns == 50 + 100);
  CHECK(two.turns == 50 + 400);
}

TEST_CASE("what a turn did cost counts, not what was expected of it", "[pipeline]") {
  FairQueue<Busy*> queue(kAlike);
  Busy overrated{kOne, 900}, underrated{kTwo, 100};  // both take 300
  push(queue, overrated), push(queue, underrated);

  for (int i = 0; i < 1'000; ++i) {
    Busy* const busy = *queue.take();
    ++busy->turns;
    const TurnCharge charged = queue.charge(busy->owner, busy->priority, busy->cost);
    queue.put_back(busy->owner, busy->priority, busy);
    queue.correct(busy->owner, busy->priority, charged, 300);
  }

  CHECK(overrated.turns == 500);
  CHECK(underrated.turns == 500);
}

TEST_CASE("what comes back to somebody who was away is no credit for that time", "[pipeline]") {
  FairQueue<Busy*> queue(kAlike);
  Busy steady{kTwo, 10};
  Busy leaver{kOne, 100};
  push(queue, leaver);
  REQUIRE(*queue.take() == &leaver);
  const TurnCharge charged = queue.charge(leaver.owner, leaver.priority, leaver.cost);
  push(queue, steady);
  serve(queue, 100);

  push(queue, leaver);
  queue.correct(leaver.owner, leaver.priority, charged, 0);
  serve(queue, 100);

  CHECK(leaver.turns <= 10);
  CHECK(steady.turns >= 190);
}

TEST_CASE("nobody owes more than a minute, however much he was given", "[pipeline]") {
  FairQueue<Busy*> queue(kAlike);
  constexpr std::uint64_t kSecond = 1'000'000'000;
  Busy greedy{kOne, 86'400 * kSecond}, steady{kTwo, kSecond};
  push(queue, greedy), push(queue, steady);

  serve(queue, 1 + 70);

  CHECK(greedy.turns == 2);
}

TEST_CASE("a debt that was forgiven is not paid back", "[pipeline]") {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  FairQueue<Busy*> queue(kAlike);
  Busy trickster{kOne, kSecond}, steady{kTwo, kSecond};
  for (Busy* busy : {&trickster, &trickster, &steady, &steady}) push(queue, *busy);  // they always want something
  serve(queue, 2 * 1'000);

  const TurnCharge charged = queue.charge(kOne, Priority::kNormal, 7'000 * kSecond);
  queue.correct(kOne, Priority::kNormal, charged, 1);
  const std::uint32_t before = steady.turns;
  serve(queue, 100);

  CHECK(steady.turns - before >= 49);
}

TEST_CASE("a user who comes while much comes back to another has his turns at once", "[pipeline]") {
  constexpr int kOut = 8;
  constexpr std::uint64_t kExpected = 5'000, kTook = 1;
  FairQueue<Busy*> queue(kAlike);
  Busy overrated{kOne, kTook}, newcomer{kTwo, kTook};
  push(queue, overrated), push(queue, overrated);
  std::vector<TurnCharge> charged;
  for (int i = 0; i < kOut; ++i) {
    REQUIRE(*queue.take() == &overrated);
    charged.push_back(queue.charge(kOne, Priority::kNormal, kExpected));
    push(queue, overrated);
  }
  for (const TurnCharge& charge : charged) queue.correct(kOne, Priority::kNormal, charge, kTook);

  push(queue, newcomer);
  serve(queue, 100);

  CHECK(newcomer.turns >= 49);
}

TEST_CASE("what was charged at a weight is corrected at the same one", "[pipeline]") {
  constexpr std::uint64_t kCost = 100'000;
  UserShares shares(FairWeights{.users = {{raw(kOne.user), 100}}});
  const auto one = caller(kOne.user);
  shares.joined(one);
  shares.joined(caller(kTwo.user));
  FairQueue<Busy*> queue(shares);
  Busy owing{kOne, kCost}, steady{kTwo, kCost};
  for (Busy* busy : {&owing, &owing, &steady, &steady}) push(queue, *busy);
  serve(queue, 101);

  const TurnCharge charged = queue.charge(kOne, Priority::kNormal, kCost);
  shares.left(one);                                              // his weight is 1 from here on
  queue.correct(kOne, Priority::kNormal, charged, 101 * kCost);  // as much as one turn of the other's
  const std::uint32_t before = owing.turns;
  serve(queue, 20);

  CHECK(owing.turns - before >= 8);
}

TEST_CASE("what may not go now lets others go, and has no credit for it", "[pipeline]") {
  FairQueue<Busy*> queue(kAlike);
  Busy held{kOne, 10}, free{kTwo, 10};
  push(queue, held), push(queue, free);
  const auto may = [&](const Busy* busy) { return busy == &free; };
  for (int i = 0; i < 100; ++i) {
    REQUIRE(*queue.take(may) == &free);
    queue.charge(free.owner, free.priority, free.cost);
    push(queue, free);
  }

  serve(queue, 100);

  CHECK(held.turns <= 51);
  CHECK(held.turns >= 49);
}

TEST_CASE("where nothing may go now, nothing is taken and no debt is forgotten", "[pipeline]") {
  FairQueue<int> queue(kAlike);
  queue.push(kOne, Priority::kNormal, 1);
  REQUIRE(queue.take() == 1);
  queue.charge(kOne, Priority::kNormal, 1'000);
  queue.push(kOne, Priority::kNormal, 2);

  REQUIRE_FALSE(queue.take([](int) { return false; }));
  queue.push(kTwo, Priority::kNormal, 3);

  REQUIRE(drain(queue) == std::vector{3, 2});
}

TEST_CASE("what is put back is its session's next", "[pipeline]") {
  FairQueue<int> queue(kAlike);
  queue.push(kOne, Priority::kNormal, 1);
  queue.push(kOne, Priority::kNormal, 2);
  queue.push(kTwo, Priority::kNormal, 9);

  const std::optional<int> first = queue.take();
  queue.put_back(kOne, Priority::kNormal, *first);

  REQUIRE(drain(queue) == std::vector{9, 1, 2});
}

TEST_CASE("what is removed leaves the others' order alone", "[pipeline]") {
  FairQueue<int> queue(kAlike);
  for (int i : {1, 2, 3}) queue.push(kOne, Priority::kNormal, i);
  for (int i : {11, 13}) queue.push(kTwo, Priority::kNormal, i);
  queue.push({kTwo.user, SessionId{3}}, Priority::kLow, 12);

  const std::vector<int> removed = queue.remove([](int item) { return item > 10; });

  REQUIRE(removed.size() == 3);
  REQUIRE(queue.size() == 3);
  REQUIRE(drain(queue) == std::vector{1, 2, 3});
}

TEST_CASE("a user who always waits is never further behind the others than two of the dearest turns", "[pipeline]") {
  constexpr std::uint64_t kDearest = 1'000;
  std::mt19937 random(7);
  FairQueue<Busy*> queue(kAlike);
  std::vector<Busy> all;
  for (std::uint64_t i = 0; i < 40; ++i)
    all.push_back({{UserId{static_cast<std::uint32_t>(i / 4)}, SessionId{i}}, 1 + random() % kDearest});
  std::map<UserId, std::uint64_t> had;
  for (Busy& busy : all) queue.push(busy.owner, Priority::kNormal, &busy);

  for (int i = 0; i < 50'000; ++i) {
    Busy* const busy = *queue.take();
    const std::uint64_t cost = 1 + random() % kDearest, expected = 1 + random() % kDearest;
    const TurnCharge charged = queue.charge(busy->owner, Priority::kNormal, expected);
    queue.correct(busy->owner, Priority::kNormal, charged, cost);
    had[busy->owner.user] += cost;
    queue.put_back(busy->owner, Priority::kNormal, busy);
  }

  const auto by_amount = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [least, most] = std::minmax_element(had.begin(), had.end(), by_amount);
  REQUIRE(most->second - least->second <= 2 * kDearest);
}

}  // namespace
}  // namespace millrace
