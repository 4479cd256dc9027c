// How many small frames each user sends on all of his connections. A frame of nine bytes costs its sender next to
// nothing and gRPC a microsecond or more, and several kinds an answer. A user has so many a second, and saves up to
// kBurst; beyond these his connections are read more slowly. An honest call is some ten of them.
//
// Thread-bound(its owner).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>

#include "daemon/model/owner.h"

namespace millrace {

class FrameMeter {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::uint32_t kBurst = 40'000, kPerSecond = 20'000;

  // `user` has sent so many more. Returns how long nothing of him is read, a second at
  // most; zero while he keeps to his rate.
  std::chrono::nanoseconds sent(UserId user, std::uint32_t frames, Clock::time_point now = Clock::now());

 private:
  void forget_the_idle(Clock::time_point now);

  // Of each user the time at which all that he has sent is paid for (the generic cell rate algorithm, ITU-T I.371).
  std::map<UserId, Clock::time_point> paid_;
};

}  // namespace millrace
