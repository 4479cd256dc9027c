// Whose turn it is among members that all want the same thing: the one that has had least of it. What a member is given
// is charged when it is known, so nobody has to tell beforehand what his next turn costs; and what was charged too much
// comes back.
//
//   enter() ──▶ waiting ──serve()──▶ is served ──charge()──▶ waiting, its next turn is later by the cost
//                  ▲                     └─ has nothing left ─▶ owing ──the clock is past its debt──▶ forgotten
//                  └──────enter()──────────────────────────────────┘
//
// Start-time fair queueing (Goyal, Vin, Cheng, 1996): a member's `due` is what it has had, the clock is the due of the
// last one served. Who comes anew begins at the clock, or beside a waiter from before it, since what was charged too
// much came back to him: it has no credit for the time that it was not there, and who leaves with a debt still has it
// when it comes back. Nobody owes more than kMostDebt: one wrong guess starves no one for good. So charge() says how much
// it did charge, and no more than that may be given back by refund(), which never takes a member further back than where
// it began.
//
// Weights are the caller's: a charge is a cost divided by a weight. O(log of the members) a step, but for members that
// are passed over. Thread-bound(its owner).
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace millrace {

// What somebody does whose turn it is.
enum class Turn : std::uint8_t {
  kPassed,  // cannot take it now: the next one is asked
  kAgain,   // takes it, and wants another one
  kLast,    // takes it, and wants none after it
};

// Of members that are due together, who goes first: here, who queued first.
struct AsQueued {
  template <class Id>
  static constexpr int rank(Id) {
    return 0;
  }
};

// `Ties::rank(id)`: of those that are due together the lowest goes first.
template <class Id, class Member, class Ties = AsQueued>
class FairTurns {
 public:
  static constexpr std::uint64_t kMostDebt = 60'000'000'000;  // beyond the clock: of nanoseconds, a minute

  bool empty() const { return waiting_.empty(); }

  // `id` wants turns from here on, if it did not already: after all that are due when it is.
  Member& enter(Id id) {
    Account& account = account_of(id);
    if (account.waiting) return account.member;
    if (account.due < beginning()) account.due = account.floor = beginning();
    requeue(id, account, account.due, true);
    return account.member;
  }

  // Turn ask(id, member), of those that wait, in the order in which they are due, until one takes its turn. Who passes
  // is due when that one was: it has no credit for turns that it could not use. false: all pass. It may change nothing
  // here but its own member.
  template <class Ask>
  bool serve(Ask ask) {
    for (auto turn = waiting_.begin(); turn != waiting_.end(); ++turn) {
      const Id id = turn->id;
      Account& account = accounts_.find(id)->second;
      const Turn answer = ask(id, account.member);
      if (answer == Turn::kPassed) continue;
      let_down_until(account.due);
      clock_ = std::max(clock_, account.due);
      requeue(id, account, account.due, answer == Turn::kAgain);
      forget_paid();
      return true;
    }
    return false;
  }

  void leave(Id id) {
    const auto found = accounts_.find(id);
    if (found != accounts_.end() && found->second.waiting) requeue(id, found->second, found->second.due, false);
  }

  struct Charged {
    Member& member;
    std::uint64_t by;  // less than the cost where it would owe more than kMostDebt
  };

  // `id` was given something that costs so much.
  Charged charge(Id id, std::uint64_t cost) {
    Account& account = account_of(id);
    const std::uint64_t before = account.due, most = std::max(before, clock_ + kMostDebt);
    requeue(id, account, cost < most - before ? before + cost : most, account.waiting);
    return {account.member, account.due - before};
  }

  // It cost so much less than it was charged. nullptr: nobody remembers `id`, and there is nothing to give back.
  // REQUIRES: at most what charge() said.
  Member* refund(Id id, std::uint64_t cost) {
    const auto found = accounts_.find(id);
    if (found == accounts_.end()) return nullptr;
    Account& account = found->second;
    requeue(id, account, account.due - std::min(cost, account.due - account.floor), account.waiting);
    return &account.member;
  }

  // Whether test(id, member) for one of those that are due first: more than one where they are due together.
  template <class Test>
  bool any_first(Test test) const {
    const auto is_later = [&](const Entry& entry) { return entry.due > waiting_.begin()->due; };
    const auto end = std::find_if(waiting_.begin(), waiting_.end(), is_later);
    return std::any_of(waiting_.begin(), end,
                       [&](const Entry& entry) { return test(entry.id, accounts_.find(entry.id)->second.member); });
  }

  // Whether nobody who waits is due before `id` is.
  bool is_due(Id id) const {
    const auto found = accounts_.find(id);
    const std::uint64_t due = found == accounts_.end() ? beginning() : found->second.due;
    return waiting_.empty() || due <= waiting_.begin()->due;
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
  struct Entry {
    std::uint64_t due;
    int rank;             // of those that are due together
    std::uint64_t order;  // of equals, who queued first
    Id id;
    bool operator<(const Entry& other) const {
      return std::tie(due, rank, order) < std::tie(other.due, other.rank, other.order);
    }
  };
  using Entries = std::set<Entry>;
  struct Account {
    std::uint64_t due;
    std::uint64_t floor;  // where it began
    typename Entries::iterator entry;
    bool waiting;
    Member member;
  };

  // Where who comes anew begins.
  std::uint64_t beginning() const { return waiting_.empty() ? clock_ : std::min(clock_, waiting_.begin()->due); }

  Account& account_of(Id id) {
    const std::uint64_t due = beginning();
    const auto [found, is_new] = accounts_.try_emplace(id, Account{due, due, {}, false, {}});
    if (is_new) found->second.entry = owing_.insert(Entry{due, Ties::rank(id), order_++, id}).first;
    return found->second;
  }

  void requeue(Id id, Account& account, std::uint64_t due, bool waiting) {
    auto node = (account.waiting ? waiting_ : owing_).extract(account.entry);  // moved: nothing is allocated
    account.due = due;
    account.waiting = waiting;
    node.value() = Entry{account.due, Ties::rank(id), order_++, id};
    account.entry = (waiting ? waiting_ : owing_).insert(std::move(node)).position;
  }

  // Those that were due before `due` have passed.
  void let_down_until(std::uint64_t due) {
    while (waiting_.begin()->due < due) {
      const Id id = waiting_.begin()->id;
      requeue(id, accounts_.find(id)->second, due, true);
    }
  }

  // Of those without a wish: they would come back to the beginning in any case.
  void forget_paid() {
    while (!owing_.empty() && owing_.begin()->due <= beginning()) {
      accounts_.erase(owing_.begin()->id);
      owing_.erase(owing_.begin());
    }
  }

  std::unordered_map<Id, Account> accounts_;  // of all that wait or owe
  Entries waiting_, owing_;
  std::uint64_t clock_ = 0;
  std::uint64_t order_ = 0;
};

}  // namespace millrace
