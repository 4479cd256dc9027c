#include <catch2/catch.hpp>

#include "daemon/pipeline/fair_queue.h"

namespace millrace {
namespace {

constexpr SessionId kOne{1};
constexpr SessionId kTwo{2};

std::vector<int> drain(FairQueue<int>& queue) {
  std::vector<int> taken;
  while (const std::optional<int> item = queue.take()) taken.push_back(*item);
  return taken;
}

TEST_CASE("one session's items come first in, first out", "[pipeline]") {
  FairQueue<int> queue;
  for (int i : {1, 2, 3}) queue.push(kOne, Priority::kNormal, i);

  REQUIRE(queue.size() == 3);
  REQUIRE(drain(queue) == std::vector{1, 2, 3});
  REQUIRE(queue.empty());
}

TEST_CASE("sessions take turns however much one of them has queued", "[pipeline]") {
  FairQueue<int> queue;
  for (int i = 10; i < 15; ++i) queue.push(kOne, Priority::kNormal, i);
  queue.push(kTwo, Priority::kNormal, 20);

  REQUIRE(drain(queue) == std::vector{10, 20, 11, 12, 13, 14});
}

TEST_CASE("a higher priority goes before everything below it", "[pipeline]") {
  FairQueue<int> queue;
  queue.push(kOne, Priority::kLow, 1);
  queue.push(kOne, Priority::kNormal, 2);
  queue.push(kTwo, Priority::kHigh, 3);

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

}  // namespace
}  // namespace millrace
