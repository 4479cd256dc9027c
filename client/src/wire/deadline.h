// Points in time until which calls wait. Pure functions, thread-safe.
#pragma once

#include <algorithm>
#include <chrono>

namespace millrace {
inline namespace client {

using Deadline = std::chrono::steady_clock::time_point;

// `timeout` from now; a negative one is now, an endless one is ten years.
inline Deadline deadline_after(std::chrono::milliseconds timeout) {
  constexpr std::chrono::milliseconds kLongest = std::chrono::hours{24 * 3650};
  return std::chrono::steady_clock::now() + std::clamp(timeout, std::chrono::milliseconds{0}, kLongest);
}

inline std::chrono::nanoseconds time_left(Deadline deadline) {
  const auto now = std::chrono::steady_clock::now();
  return deadline <= now ? std::chrono::nanoseconds{0} : std::chrono::nanoseconds(deadline - now);
}

}  // namespace client
}  // namespace millrace
