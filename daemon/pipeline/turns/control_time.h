// What the control thread does for each user. It is one thread for all, and takes a core from the lanes: so its time is
// charged to turns, in reading and in making, beside that of fetch threads and lanes, and a user who has had his part of
// a busy one is heard later (must_wait()).
//
//   work_for(user) ──▶ the time from here on is his ──the scope ends──▶ the one's before again, or nobody's
//
// It is also told to sessions as what they cost: their parts by the clock on the wall, cut to the CPU time that the
// thread had meanwhile, which is read every 20 ms and not at each scope.
//
// Thread-bound(control).
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/observe/cost.h"
#include "daemon/observe/cpu_time.h"
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

  // See work_for().
  class Working;

 private:
  // For whom it works.
  struct Served {
    std::optional<UserId> user;
    std::shared_ptr<SessionCosts> costs;  // shared with the session; null: of none
  };

 public:
  class [[nodiscard]] Working {
   public:
    Working(ControlTime& time, UserId user, std::shared_ptr<SessionCosts> costs)
        : time_(time), before_(time.go_on_for({user, std::move(costs)})) {}
    ~Working() { time_.go_on_for(std::move(before_)); }
    Working(const Working&) = delete;
    Working& operator=(const Working&) = delete;

   private:
    ControlTime& time_;
    Served before_;
  };
  // `costs`: of his session; may be null.
  Working work_for(UserId user, std::shared_ptr<SessionCosts> costs = nullptr) {
    return {*this, user, std::move(costs)};
  }

  // Tells sessions what they have cost until now, for one who reads it.
  void settle() {
    pause();
    settle_at(at_);
  }

  // Another thread did so much for him that no turn is charged for.
  void add(UserId user, std::chrono::nanoseconds time) {
    if (shares_->is_here(user)) users_[user].add(static_cast<std::uint64_t>(time.count()));
  }

  // step(user, nanoseconds) of what each has had since the stage took it last.
  enum class Stage : std::uint8_t { kReading, kMaking };
  template <class Step>
  void take(Stage stage, Step step) {
    pause();
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
    pause();
    const auto found = users_.find(user);
    return found != users_.end() && all_.is_over(kBusy, at_) && found->second.of_late.is_over(part_of(user), at_);
  }

 private:
  static constexpr double kMost = std::chrono::nanoseconds(250'000'000).count();  // remembered of what was too much
  static constexpr double kBusy = 0.75;                                           // of the thread's time
  static constexpr std::chrono::milliseconds kBetweenSettlements{20};
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

  // Who has had the time until now is charged for it.
  void pause() {
    const Clock::time_point now = now_();
    const std::chrono::nanoseconds had = now - std::exchange(at_, now);
    if (current_.costs) {
      if (current_.costs->control_unsettled.count() == 0) unsettled_.push_back(current_.costs);
      current_.costs->control_unsettled += had;
    }
    if (current_.user && shares_->is_here(*current_.user)) {
      Had& his = users_[*current_.user];
      his.add(static_cast<std::uint64_t>(had.count()));
      his.of_late.add(static_cast<double>(had.count()), part_of(*current_.user), now);
      all_.add(static_cast<double>(had.count()), kBusy, now);
    }
    if (now - settled_ >= kBetweenSettlements) settle_at(now);
  }

  // What was before.
  Served go_on_for(Served next) {
    pause();
    return std::exchange(current_, std::move(next));
  }

  // The clock on the wall goes on while the thread has no processor: what sessions had by it is no more together than
  // the thread's CPU time.
  void settle_at(Clock::time_point now) {
    settled_ = now;
    const std::chrono::nanoseconds cpu = cpu_.lap();
    std::chrono::nanoseconds all{0};
    for (const auto& costs : unsettled_) all += costs->control_unsettled;
    const double most = static_cast<double>(std::max(cpu.count(), std::int64_t{0}));
    const double part = all <= cpu ? 1 : most / static_cast<double>(all.count());
    for (const auto& costs : unsettled_) {
      const auto had = static_cast<double>(std::exchange(costs->control_unsettled, {}).count());
      costs->add({.control_cpu = std::chrono::nanoseconds(static_cast<std::int64_t>(had * part))});
    }
    unsettled_.clear();
  }

  const UserShares* shares_;
  const Now now_;
  std::unordered_map<UserId, Had> users_;  // that have sessions, or had much of late
  Recent all_;
  Served current_;
  Clock::time_point at_{};  // since when it works for him
  ThreadStopwatch cpu_;
  std::vector<std::shared_ptr<SessionCosts>> unsettled_;  // shared with their sessions: who had some of it since
  Clock::time_point settled_{};
};

}  // namespace millrace
