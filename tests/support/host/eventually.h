// The only waiting that a test does for something that gives no sign: look, and look again until it is so or the time
// is over.
//
//   REQUIRE(eventually([&] { return pool.free_slots() == 4; }));
#pragma once

#include <chrono>
#include <thread>

namespace millrace {

// Whether `condition` became true within `limit`; looked at every millisecond, and once more at the end.
template <class Condition>
[[nodiscard]] bool eventually(Condition&& condition, std::chrono::milliseconds limit = std::chrono::seconds(60)) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < deadline) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

}  // namespace millrace
