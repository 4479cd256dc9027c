#include "proto/base/bounded_queue.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <thread>
#include <vector>

namespace millrace {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a queue gives back what went in, in order", "[base]") {
  BoundedQueue<int> queue(3);

  REQUIRE(queue.try_push(1));
  REQUIRE(queue.try_push(2));

  REQUIRE(queue.size() == 2);
  REQUIRE(queue.pop() == 1);
  REQUIRE(queue.pop() == 2);
}

TEST_CASE("a full queue refuses and leaves the item with its owner", "[base]") {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  REQUIRE(queue.try_push(std::make_unique<int>(1)));
  auto second = std::make_unique<int>(2);

  const bool pushed = queue.try_push(std::move(second));

  REQUIRE_FALSE(pushed);
  REQUIRE(second);
  REQUIRE(*second == 2);
}

TEST_CASE("a closed queue takes nothing more and is drained", "[base]") {
  BoundedQueue<int> queue(3);
  REQUIRE(queue.try_push(1));

  queue.close();

  REQUIRE_FALSE(queue.try_push(2));
  REQUIRE(queue.pop() == 1);
  REQUIRE_FALSE(queue.pop());
}

TEST_CASE("a pop with a deadline ends at the deadline", "[base]") {
  BoundedQueue<int> queue(1);
  const auto deadline = std::chrono::steady_clock::now() + 20ms;

  const auto nothing = queue.pop_until(deadline);

  REQUIRE_FALSE(nothing);
  REQUIRE(std::chrono::steady_clock::now() >= deadline);
}

TEST_CASE("closing wakes every thread that waits", "[base]") {
  BoundedQueue<int> queue(1);
  std::atomic<int> woken{0};
  std::vector<std::thread> waiting;
  for (int i = 0; i < 3; ++i)
    waiting.emplace_back([&] {
      if (!queue.pop()) ++woken;
    });

  queue.close();
  for (std::thread& thread : waiting) thread.join();

  REQUIRE(woken == 3);
}

TEST_CASE("between many threads nothing is lost and nothing comes twice", "[base]") {
  constexpr int kPushers = 3;
  constexpr int kEach = 2'000;
  BoundedQueue<int> queue(7);
  std::vector<std::vector<int>> popped(2);
  std::vector<std::thread> poppers;
  for (auto& mine : popped)
    poppers.emplace_back([&queue, &mine] {
      while (const auto item = queue.pop()) mine.push_back(*item);
    });

  std::vector<std::thread> pushers;
  for (int p = 0; p < kPushers; ++p)
    pushers.emplace_back([&queue, p] {
      for (int i = 0; i < kEach; ++i)
        while (!queue.try_push(p * kEach + i)) std::this_thread::yield();
    });
  for (std::thread& thread : pushers) thread.join();
  queue.close();
  for (std::thread& thread : poppers) thread.join();

  std::vector<int> all(popped[0]);
  all.insert(all.end(), popped[1].begin(), popped[1].end());
  std::sort(all.begin(), all.end());
  REQUIRE(all.size() == kPushers * kEach);
  for (int i = 0; i < kPushers * kEach; ++i) REQUIRE(all[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("a condition says whether it was woken or the time was over", "[base]") {
  Mutex mutex;
  Condition condition;
  MutexLock lock(mutex);

  REQUIRE_FALSE(condition.wait_until(mutex, std::chrono::steady_clock::now() - 1ms));
}

}  // namespace
}  // namespace millrace
