// Work waiting for a stage, in the order in which it should go on: the user who has had least for his weight; of his
// work that of the priority that has had least for its parts, 8 to 2 to 1; of that the session that has had least; and a
// session's items first in, first out.
//
// Turns are by cost: who was given much waits until the others have had as much. So a user has one user's share however
// many sessions he has open and whatever priority he asks for: high gets him more of his own share, and nobody else's. A
// session whose items cost ten times as much gets a tenth as many of them. What an item costs is charged as expected
// when it is taken and corrected when it is known. Debts last as long as others have something to do: once a stage has
// asked in vain and nothing waits, all begin anew.
//
// O(log users + log sessions) a step. Thread-bound(control).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/model/owner.h"
#include "daemon/pipeline/turns/fair_turns.h"
#include "daemon/pipeline/turns/user_shares.h"
#include "proto/base/batch_choices.h"
#include "proto/base/ids.h"

namespace millrace {

// What a charge() has made of a cost, for correct() to go by. Value.
struct TurnCharge {
  std::uint64_t cost = 0;                                   // as it was expected
  std::uint32_t weight = 1;                                 // of its user, at that time
  std::uint64_t of_user = 0, of_class = 0, of_session = 0;  // so much later they are due
};

template <class T>
class FairQueue {
 public:
  static constexpr std::array<std::uint64_t, kPriorities> kParts{1, 2, 8};  // of a user's own: low, normal, high

  // `shares`: the users' weights; outlives it.
  explicit FairQueue(const UserShares& shares) : shares_(&shares) {}

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  void push(Owner owner, Priority priority, T item) {
    items_of(owner, priority).push_back(std::move(item));
    ++size_;
  }

  // The item goes first among its session's: what take() gave and is not used up.
  void put_back(Owner owner, Priority priority, T item) {
    items_of(owner, priority).push_front(std::move(item));
    ++size_;
  }

  // The next item for which may(item), of those that are first of their sessions; nullopt: none. Without a charge() it
  // has cost nothing: its session is due again, after others that are. Sessions of which it may not be have no credit
  // for it.
  template <class May>
  std::optional<T> take(May may) {
    if (empty()) users_.settle();
    std::optional<T> taken;
    users_.serve([&](UserId, Classes& classes) {
      classes.serve([&](Priority, Sessions& sessions) {
        sessions.serve([&](SessionId, Items& items) { return take_first(items, may, taken); });
        return after(taken, sessions.empty());
      });
      return after(taken, classes.empty());
    });
    if (taken) --size_;
    return taken;
  }
  std::optional<T> take() {
    return take([](const T&) { return true; });
  }

  // What was taken of `owner` costs so much, in any unit that is the same for all items of the queue.
  TurnCharge charge(Owner owner, Priority priority, std::uint64_t cost) {
    return charge(owner, priority, cost, shares_->weight_of(owner.user));
  }

  // Something that is none of its items costs so much, of whatever his sessions have.
  void charge(UserId user, std::uint64_t cost) { users_.charge(user, divided(cost, shares_->weight_of(user))); }

  // What was charged so did cost `actual`. The weight is that of the charge: his may be another by now, or none.
  void correct(Owner owner, Priority priority, const TurnCharge& charged, std::uint64_t actual) {
    if (actual > charged.cost) {
      charge(owner, priority, actual - charged.cost, charged.weight);
      return;
    }
    const auto less = [&](std::uint64_t by, std::uint64_t of) { return by - std::min(by, divided(actual, of)); };
    Classes* const classes = users_.refund(owner.user, less(charged.of_user, charged.weight));
    if (classes == nullptr) return;
    Sessions* const sessions = classes->refund(priority, less(charged.of_class, parts_of(priority)));
    if (sessions != nullptr) sessions->refund(owner.session, less(charged.of_session, 1));
  }

  // Whether no other user waits who has had less for his weight.
  bool is_due(UserId user) const { return users_.is_due(user); }

  // Whether test(item) for one of those that are due first.
  template <class Test>
  bool any_first(Test test) const {
    return users_.any_first([&](UserId, const Classes& classes) {
      return classes.any_first([&](Priority, const Sessions& sessions) {
        return sessions.any_first([&](SessionId, const Items& items) { return test(items.front()); });
      });
    });
  }

  // Takes out all for which unwanted(item), in no particular order.
  template <class Unwanted>
  std::vector<T> remove(Unwanted unwanted) {
    std::vector<T> removed;
    users_.for_each_waiting([&](UserId user, Classes& classes) {
      classes.for_each_waiting([&](Priority priority, Sessions& sessions) {
        sessions.for_each_waiting([&](SessionId session, Items& items) {
          const auto first = std::stable_partition(items.begin(), items.end(), std::not_fn(unwanted));
          std::move(first, items.end(), std::back_inserter(removed));
          items.erase(first, items.end());
          if (items.empty()) sessions.leave(session);
        });
        if (sessions.empty()) classes.leave(priority);
      });
      if (classes.empty()) users_.leave(user);
    });
    size_ -= removed.size();
    return removed;
  }

 private:
  using Items = std::deque<T>;  // of a session that waits: never empty
  using Sessions = FairTurns<SessionId, Items>;
  struct UrgentFirst {
    static constexpr int rank(Priority priority) { return -static_cast<int>(priority); }
  };
  using Classes = FairTurns<Priority, Sessions, UrgentFirst>;
  using Users = FairTurns<UserId, Classes>;

  static std::uint64_t parts_of(Priority priority) { return kParts[static_cast<std::size_t>(priority)]; }
  static std::uint64_t divided(std::uint64_t cost, std::uint64_t by) { return (cost + by - 1) / by; }

  TurnCharge charge(Owner owner, Priority priority, std::uint64_t cost, std::uint32_t weight) {
    const auto [classes, of_user] = users_.charge(owner.user, divided(cost, weight));
    const auto [sessions, of_class] = classes.charge(priority, divided(cost, parts_of(priority)));
    const std::uint64_t of_session = sessions.charge(owner.session, cost).by;
    return {cost, weight, of_user, of_class, of_session};
  }

  Items& items_of(Owner owner, Priority priority) {
    return users_.enter(owner.user).enter(priority).enter(owner.session);
  }

  template <class May>
  static Turn take_first(Items& items, May& may, std::optional<T>& taken) {
    if (!may(std::as_const(items.front()))) return Turn::kPassed;
    taken.emplace(std::move(items.front()));
    items.pop_front();
    return after(taken, items.empty());
  }
  static Turn after(const std::optional<T>& taken, bool was_last) {
    if (!taken) return Turn::kPassed;
    return was_last ? Turn::kLast : Turn::kAgain;
  }

  const UserShares* shares_;
  Users users_;
  std::size_t size_ = 0;
};

}  // namespace millrace
