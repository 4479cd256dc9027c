// What the control thread does for each user. It is one thread for all, and takes a core from the lanes: so its time is
// charged to turns, in reading and in making, beside that of fetch threads and lanes, and a user who has had his part of
// a busy one is heard later (must_wait()).
//
//   work_for(user) ──▶ the time from here on is his ──the scope ends──▶ the one's before again, or nobody's
//
// Thread-bound(control).
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>

#include "daemon/pipeline/turns/user_shares.h"
#include "proto/base/ids.h"

namespace millrace {

class ControlTime {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kAskAgain{4};  // after must_wait()

  using Now = Clock::time_point (*)();

  // `shares`: outlives it. `now`: for tests.
  explicit ControlTime(const UserShares& shares, Now now = &Clock::now) : shares_(&shares), now_(now) {}

  class [[nodiscard]] Working {
   public:
    Working(ControlTime& time, UserId user) : time_(time), before_(time.go_on_for(user)) {}
    ~Working() { time_.go_on_for(before_); }
    Working(const Working&) = delete;
    Working& operator=(const Working&) = delete;

   private:
    ControlTime& time_;
    const std::optional<UserId> before_;
  };
  Working work_for(UserId user) { return {*this, user}; }

  // Another thread did so much for him that no turn is charged for.
  void add(UserId user, std::chrono::nanoseconds time) {
    if (shares_->is_here(user)) users_[user].add(static_cast<std::uint64_t>(time.count()));
  }

  // step(user, nanoseconds) of what each has had since the stage took it last.
  enum class Stage : std::uint8_t { kReading, kMaking };
  template <class Step>
  void take(Stage stage, Step step) {
    go_on_for(current_);
    for (auto& [user, had] : users_) {
      std::uint64_t& untaken = had.untaken[static_cast<std::size_t>(stage)];
      if (untaken != 0) step(user, std::exchange(untaken, 0));
    }
    for (auto one = users_.begin(); one != users_.end();) {
      Had& had = one->second;
      const bool is_over = !shares_->is_here(one->first) && had.is_paid() && !had.of_late.is_over(kBusy, at_);
      one = is_over ? users_.erase(one) : std::next(one);
    }
  }

  // Whether his next message waits: the thread is busy, others have sessions, and of late he has had more of it than his
  // part by weight.
  bool must_wait(UserId user) {
    if (!shares_->has_others(user)) return false;
    go_on_for(current_);
    const auto found = users_.find(user);
    return found != users_.end() && all_.is_over(kBusy, at_) && found->second.of_late.is_over(part_of(user), at_);
  }

 private:
  static constexpr double kMost = std::chrono::nanoseconds(250'000'000).count();  // remembered of what was too much
  static constexpr double kBusy = 0.75;                                           // of the thread's time
  static constexpr double kAtOnce = std::chrono::nanoseconds(4'000'000).count();  // had without a pause

  // Time that was had, less what has been due since.
  class Recent {
   public:
    void add(double had, double rate, Clock::time_point now) {
      pass(rate, now);
      level_ = std::min(level_ + had, kMost);
    }
    bool is_over(double rate, Clock::time_point now) {
      pass(rate, now);
      return level_ > kAtOnce;
    }

   private:
    void pass(double rate, Clock::time_point now) {
      const std::chrono::duration<double, std::nano> passed = now - std::exchange(until_, now);
      level_ = std::max(0.0, level_ - rate * passed.count());
    }

    double level_ = 0;
    Clock::time_point until_{};
  };
  struct Had {
    void add(std::uint64_t nanoseconds) {
      for (std::uint64_t& sum : untaken) sum += nanoseconds;
    }

    bool is_paid() const { return untaken == decltype(untaken){}; }

    std::array<std::uint64_t, 2> untaken{};  // by stage
    Recent of_late;
  };

  double part_of(UserId user) const { return kBusy * shares_->part_of(user); }

  // What was before.
  std::optional<UserId> go_on_for(std::optional<UserId> user) {
    const Clock::time_point now = now_();
    const auto had = static_cast<double>((now - std::exchange(at_, now)).count());
    if (current_ && shares_->is_here(*current_)) {
      Had& his = users_[*current_];
      his.add(static_cast<std::uint64_t>(had));
      his.of_late.add(had, part_of(*current_), now);
      all_.add(had, kBusy, now);
    }
    return std::exchange(current_, user);
  }

  const UserShares* shares_;
  const Now now_;
  std::unordered_map<UserId, Had> users_;  // that have sessions, or had much of late
  Recent all_;
  std::optional<UserId> current_;
  Clock::time_point at_{};  // since when it works for him
};

}  // namespace millrace
