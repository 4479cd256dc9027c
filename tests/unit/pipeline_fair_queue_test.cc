#include <catch2/catch.hpp>

#include <map>
#include <random>

#include "daemon/pipeline/fair_queue.h"

namespace millrace {
namespace {

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
  std::uint32_t turns = 0;
};

void serve(FairQueue<Busy*>& queue, int turns) {
  for (int i = 0; i < turns; ++i) {
    Busy* const busy = *queue.take();
    ++busy->turns;
    queue.charge(busy->owner, Priority::kNormal, busy->cost);
    queue.put_back(busy->owner, Priority::kNormal, busy);
  }
}

TEST_CASE("one session's items come first in, first out", "[pipeline]") {
  FairQueue<int> queue;
  for (int i : {1, 2, 3}) queue.push(kOne, Priority::kNormal, i);

  REQUIRE(queue.size() == 3);
  REQUIRE(drain(queue) == std::vector{1, 2, 3});
  REQUIRE(queue.empty());
}

TEST_CASE("users take turns however much one of them has queued", "[pipeline]") {
  FairQueue<int> queue;
  for (int i = 10; i < 15; ++i) queue.push(kOne, Priority::kNormal, i);
  queue.push(kTwo, Priority::kNormal, 20);

  REQUIRE(drain(queue) == std::vector{10, 20, 11, 12, 13, 14});
}

TEST_CASE("a user's sessions take turns", "[pipeline]") {
  FairQueue<int> queue;
  for (int i = 10; i < 13; ++i) queue.push(kOne, Priority::kNormal, i);
  for (int i = 20; i < 23; ++i) queue.push({kOne.user, SessionId{7}}, Priority::kNormal, i);

  REQUIRE(drain(queue) == std::vector{10, 20, 11, 21, 12, 22});
}

TEST_CASE("a user with ten sessions gets no more than one with a single session", "[pipeline]") {
  FairQueue<Busy*> queue;
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
  FairQueue<Busy*> queue;
  Busy dear{kOne, 1'000};
  Busy cheap{{of_one_user ? kOne.user : kTwo.user, SessionId{2}}, 100};
  queue.push(dear.owner, Priority::kNormal, &dear);
  queue.push(cheap.owner, Priority::kNormal, &cheap);

  serve(queue, 1'100);

  REQUIRE(dear.turns == 100);
  REQUIRE(cheap.turns == 1'000);
}

TEST_CASE("who is back after a moment still owes for what was taken before", "[pipeline]") {
  FairQueue<int> queue;
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
  FairQueue<Busy*> queue;
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
  FairQueue<int> queue;
  queue.push(kOne, Priority::kNormal, 1);
  REQUIRE(queue.take() == 1);
  queue.charge(kOne, Priority::kNormal, 1'000'000);
  REQUIRE_FALSE(queue.take());

  queue.push(kOne, Priority::kNormal, 2);
  queue.push(kTwo, Priority::kNormal, 3);
  queue.push(kTwo, Priority::kNormal, 4);

  REQUIRE(drain(queue) == std::vector{2, 3, 4});
}

TEST_CASE("a higher priority goes before everything below it", "[pipeline]") {
  FairQueue<int> queue;
  queue.push(kOne, Priority::kLow, 1);
  queue.push(kOne, Priority::kNormal, 2);
  queue.push(kTwo, Priority::kHigh, 3);
  queue.charge(kTwo, Priority::kHigh, 1'000);

  REQUIRE(drain(queue) == std::vector{3, 2, 1});
}

TEST_CASE("what is put back is its session's next", "[pipeline]") {
  FairQueue<int> queue;
  queue.push(kOne, Priority::kNormal, 1);
  queue.push(kOne, Priority::kNormal, 2);
  queue.push(kTwo, Priority::kNormal, 9);

  const std::optional<int> first = queue.take();
  queue.put_back(kOne, Priority::kNormal, *first);

  REQUIRE(drain(queue) == std::vector{9, 1, 2});
}

TEST_CASE("what is removed leaves the others' order alone", "[pipeline]") {
  FairQueue<int> queue;
  for (int i : {1, 2, 3}) queue.push(kOne, Priority::kNormal, i);
  for (int i : {11, 13}) queue.push(kTwo, Priority::kNormal, i);
  queue.push({kTwo.user, SessionId{3}}, Priority::kLow, 12);

  const std::vector<int> removed = queue.remove([](int item) { return item > 10; });

  REQUIRE(removed.size() == 3);
  REQUIRE(queue.size() == 3);
  REQUIRE(drain(queue) == std::vector{1, 2, 3});
}

TEST_CASE("whoever always waits is never further behind the others than two of the dearest turns", "[pipeline]") {
  constexpr std::uint64_t kDearest = 1'000;
  std::mt19937 random(7);
  FairQueue<Busy*> queue;
  std::vector<Busy> all;
  for (std::uint64_t i = 0; i < 40; ++i)
    all.push_back({{UserId{static_cast<std::uint32_t>(i / 4)}, SessionId{i}}, 1 + random() % kDearest});
  std::map<UserId, std::uint64_t> had;
  for (Busy& busy : all) queue.push(busy.owner, Priority::kNormal, &busy);

  for (int i = 0; i < 50'000; ++i) {
    Busy* const busy = *queue.take();
    const std::uint64_t cost = 1 + random() % kDearest;
    queue.charge(busy->owner, Priority::kNormal, cost);
    had[busy->owner.user] += cost;
    queue.put_back(busy->owner, Priority::kNormal, busy);
  }

  const auto by_amount = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [least, most] = std::minmax_element(had.begin(), had.end(), by_amount);
  REQUIRE(most->second - least->second <= 2 * kDearest);
}

}  // namespace
}  // namespace millrace
