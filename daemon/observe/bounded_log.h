// Lines of the log that clients, or disks, can cause as often as they like: bounded, and never without a word about
// what was left out. Thread-bound(their owner).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "proto/base/log_level.h"

namespace millrace {

// One kind of trouble: a line at once, then one every ten seconds with how often it came.
class SeldomLine {
 public:
  using Clock = std::chrono::steady_clock;

  void warn(std::string_view text, Clock::time_point now = Clock::now());
  // Nothing is left out, and the next line would come at once.
  bool quiet(Clock::time_point now) const;

 private:
  std::optional<Clock::time_point> said_;
  std::uint64_t unsaid_ = 0;
};

// One kind of trouble that each user can cause, a SeldomLine each.
class SeldomLineByUser {
 public:
  using Clock = std::chrono::steady_clock;

  void warn(std::uint32_t user, std::string_view text, Clock::time_point now = Clock::now());

 private:
  std::map<std::uint32_t, SeldomLine> lines_;  // of users who are not quiet
};

// Lines about what users do: of each user 100 at once, and one every six seconds in the long run, so that none hides
// what others do. The last of them says that it is, the next one how many are missing.
class LinesByUser {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint32_t kAtOnce = 100;
  static constexpr std::chrono::seconds kBetween{6};

  // What the level hides does not count.
  void say(LogLevel level, std::uint32_t user, std::string_view text, Clock::time_point now = Clock::now());

 private:
  struct Allowance {
    std::uint32_t lines = kAtOnce;
    Clock::time_point since;  // when it was counted last
    std::uint64_t unsaid = 0;
  };

  void forget_quiet_users(Clock::time_point now);

  std::map<std::uint32_t, Allowance> allowances_;  // of users who have said something lately
};

}  // namespace millrace
