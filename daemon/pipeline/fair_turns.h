// Whose turn it is among members that all want the same thing: the one that has had least of it. What a member is given
// is charged when it is known, so nobody has to tell beforehand what his next turn costs.
//
//   enter() ──▶ waiting ──first()──▶ is served ──charge()──▶ waiting, its next turn is later by the cost
//                  ▲                     └─leave()─▶ owing ──the clock is past its debt──▶ forgotten
//                  └──────enter()──────────────────────┘
//
// Start-time fair queueing (Goyal, Vin, Cheng, 1996): a member's `due` is what it has had, the clock is the due of the
// last one served. Who comes anew begins at the clock: it has no credit for the time that it was not there, and who
// leaves with a debt still has it when it comes back.
//
// O(log of the members) a step. Thread-bound(its owner).
#pragma once

#include <cstdint>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace millrace {

template <class Id, class Member>
class FairTurns {
 public:
  bool empty() const { return waiting_.empty(); }

  // `id` wants turns from here on, if it did not already: after all that are due when it is.
  Member& enter(Id id) {
    Account& account = account_of(id);
    if (!account.waiting) requeue(id, account, account.due, true);
    return account.member;
  }

  // The one whose turn it is. It is still waiting: leave() or pass() says what becomes of it. REQUIRES: not empty().
  std::pair<Id, Member&> first() {
    const Id id = waiting_.begin()->id;
    Account& account = accounts_.find(id)->second;
    clock_ = account.due;
    forget_paid();
    return {id, account.member};
  }

  // Has had its turn, and wants another one. REQUIRES: it waits.
  void pass(Id id) {
    Account& account = accounts_.find(id)->second;
    requeue(id, account, account.due, true);
  }

  void leave(Id id) {
    const auto found = accounts_.find(id);
    if (found != accounts_.end() && found->second.waiting) requeue(id, found->second, found->second.due, false);
  }

  // `id` was given something that costs so much.
  Member& charge(Id id, std::uint64_t cost) {
    Account& account = account_of(id);
    requeue(id, account, account.due + cost, account.waiting);
    return account.member;
  }

  // All debts are paid: nobody wants anything, and there is some left. REQUIRES: empty().
  void settle() {
    accounts_.clear();
    owing_.clear();
    clock_ = 0;
  }

  // step(id, member) for all that wait. It may leave() none but itself.
  template <class Step>
  void for_each_waiting(Step step) {
    for (auto turn = waiting_.begin(); turn != waiting_.end();) {
      const Id id = (turn++)->id;
      step(id, accounts_.find(id)->second.member);
    }
  }

 private:
  struct Turn {
    std::uint64_t due;
    std::uint64_t order;  // of two that are due together, who queued first
    Id id;
    bool operator<(const Turn& other) const { return std::tie(due, order) < std::tie(other.due, other.order); }
  };
  using Turns = std::set<Turn>;
  struct Account {
    std::uint64_t due;
    typename Turns::iterator turn;
    bool waiting;
    Member member;
  };

  Account& account_of(Id id) {
    const auto [found, is_new] = accounts_.try_emplace(id, Account{clock_, {}, false, {}});
    if (is_new) found->second.turn = owing_.insert(Turn{clock_, order_++, id}).first;
    return found->second;
  }

  void requeue(Id id, Account& account, std::uint64_t due, bool waiting) {
    auto node = (account.waiting ? waiting_ : owing_).extract(account.turn);  // moved: nothing is allocated
    account.due = due;
    account.waiting = waiting;
    node.value() = Turn{account.due, order_++, id};
    account.turn = (waiting ? waiting_ : owing_).insert(std::move(node)).position;
  }

  // Of those without a wish: they would come back to the clock in any case.
  void forget_paid() {
    while (!owing_.empty() && owing_.begin()->due <= clock_) {
      accounts_.erase(owing_.begin()->id);
      owing_.erase(owing_.begin());
    }
  }

  std::unordered_map<Id, Account> accounts_;  // of all that wait or owe
  Turns waiting_, owing_;
  std::uint64_t clock_ = 0;
  std::uint64_t order_ = 0;
};

}  // namespace millrace
