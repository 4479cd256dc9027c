// Work waiting for a stage, in the order in which it should go on: the highest priority first; within it the user who
// has had least, of that user's sessions the one that has had least, and a session's items first in, first out.
//
// Turns are by cost: who was given much waits until the others have had as much. So a user has one user's share however
// many sessions he has open, and a session whose items cost ten times as much gets a tenth as many of them. Debts last
// as long as others have something to do: once a stage has asked in vain (take() gives nothing), all begin anew.
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
#include "daemon/pipeline/fair_turns.h"
#include "proto/base/batch_choices.h"
#include "proto/base/ids.h"

namespace millrace {

template <class T>
class FairQueue {
 public:
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

  // The next item. Without a charge() it has cost nothing: its session is due again, after others that are.
  std::optional<T> take() {
    for (std::size_t p = kPriorities; p-- > 0;) {
      if (!users_[p].empty()) return take_from(users_[p]);
    }
    for (Users& users : users_) users.settle();
    return std::nullopt;
  }

  // What was taken of `owner` costs so much, in any unit that is the same for all items of the queue.
  void charge(Owner owner, Priority priority, std::uint64_t cost) {
    Users& users = users_[static_cast<std::size_t>(priority)];
    users.charge(owner.user, cost).charge(owner.session, cost);
  }

  // Takes out all for which unwanted(item), in no particular order.
  template <class Unwanted>
  std::vector<T> remove(Unwanted unwanted) {
    std::vector<T> removed;
    for (Users& users : users_) {
      users.for_each_waiting([&](UserId user, Sessions& sessions) {
        sessions.for_each_waiting([&](SessionId session, Items& items) {
          const auto first = std::stable_partition(items.begin(), items.end(), std::not_fn(unwanted));
          std::move(first, items.end(), std::back_inserter(removed));
          items.erase(first, items.end());
          if (items.empty()) sessions.leave(session);
        });
        if (sessions.empty()) users.leave(user);
      });
    }
    size_ -= removed.size();
    return removed;
  }

 private:
  using Items = std::deque<T>;  // of a session that waits: never empty
  using Sessions = FairTurns<SessionId, Items>;
  using Users = FairTurns<UserId, Sessions>;

  Items& items_of(Owner owner, Priority priority) {
    return users_[static_cast<std::size_t>(priority)].enter(owner.user).enter(owner.session);
  }

  T take_from(Users& users) {
    auto [user, sessions] = users.first();
    auto [session, items] = sessions.first();
    T item = std::move(items.front());
    items.pop_front();
    --size_;
    items.empty() ? sessions.leave(session) : sessions.pass(session);
    sessions.empty() ? users.leave(user) : users.pass(user);
    return item;
  }

  std::array<Users, kPriorities> users_;
  std::size_t size_ = 0;
};

}  // namespace millrace
