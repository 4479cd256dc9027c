// Who holds how much of what the daemon has only so much of. What is taken is charged before it is taken, to a user and
// one of his sessions, and is given back when the Charge goes, whichever way that happens.
//
//   ledger.account({user, session})         once a session; a user's connections have one without a session
//     └─ charge(resource, amount) ─▶ Charge  or the refusal that explain() words; try_charge() where full is a state
//
//   what is in use <= bounds, in all, of each user, of each session        but for what is take()n without asking
//   of a user <= kTimesFree x what is free                                 where Bounds::parts says so
//
// A charge and its return are three atomic operations each: no lock, no memory. Only account() has a lock.
// Thread-safe; a Charge is Thread-bound(its owner), who may be another thread than the one that made it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/admit/resource.h"
#include "daemon/model/owner.h"
#include "daemon/observe/counters.h"
#include "proto/base/bytes.h"
#include "proto/base/mutex.h"
#include "proto/base/result.h"

namespace millrace {

class Account;
class Ledger;

// So much of a resource, until it goes. Move-only; empty when moved from. Keeps its account.
class Charge {
 public:
  Charge() = default;
  ~Charge() { refund(); }
  Charge(Charge&& other) noexcept
      : account_(std::move(other.account_)), resource_(other.resource_), amount_(std::exchange(other.amount_, 0)) {}
  Charge& operator=(Charge&& other) noexcept;

  std::uint64_t amount() const { return amount_; }
  // What `other` held as well. REQUIRES: of the same resource and account, or one of them is empty.
  void absorb(Charge other);
  // Gives back what is more than `amount`. REQUIRES: amount <= amount().
  void shrink_to(std::uint64_t amount);
  void refund() { shrink_to(0); }  // Idempotent

 private:
  friend class Account;
  Charge(std::shared_ptr<Account> account, Resource resource, std::uint64_t amount)
      : account_(std::move(account)), resource_(resource), amount_(amount) {}

  std::shared_ptr<Account> account_;  // shared by its charges: the session may be gone before its last one
  Resource resource_{};
  std::uint64_t amount_ = 0;
};

// What is in use, by resource. Writers: threads that charge; each cell stands for itself.
class InUse {
 public:
  std::atomic<std::uint64_t>& operator[](Resource resource) { return cells_[static_cast<std::size_t>(resource)]; }
  std::uint64_t of(Resource resource) const {
    return cells_[static_cast<std::size_t>(resource)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::uint64_t>, kResources> cells_{};
};

// One session's side of the ledger.
class Account : public std::enable_shared_from_this<Account> {
 public:
  Account(Ledger& ledger, Owner owner, std::shared_ptr<InUse> users)
      : ledger_(ledger), owner_(owner), users_(std::move(users)) {}

  Owner owner() const { return owner_; }
  Ledger& ledger() const { return ledger_; }

  // kExhausted: what there is too much of, whose, and what to do: explain().
  Result<Charge> charge(Resource resource, std::uint64_t amount);
  Result<Charge> charge(Resource resource, Bytes bytes) { return charge(resource, bytes.count); }
  // nullopt: it is over a bound.
  std::optional<Charge> try_charge(Resource resource, std::uint64_t amount);
  // For what is known only when it is there: over the bounds as well. See Ledger::is_full().
  Charge take(Resource resource, std::uint64_t amount);

  // In all, of its user, of itself.
  std::uint64_t in_use(Resource resource, Bound of = Bound::kSession) const;

 private:
  friend class Charge;
  std::optional<Bound> add(Resource resource,
                           std::uint64_t amount);  // the bound that it is over; then nothing is added
  bool is_over_part(Resource resource) const;      // its user is. Never without Bounds::parts
  void take_off(Resource resource, std::uint64_t amount);
  void subtract(Resource resource, std::uint64_t amount);

  Ledger& ledger_;
  const Owner owner_;
  const std::shared_ptr<InUse> users_;  // shared by the user's accounts
  InUse own_;
};

// Outlives its accounts and their charges.
class Ledger {
 public:
  // `shown`: where what is in use is shown, of rows with a gauge; outlives it. Null: nowhere.
  explicit Ledger(const Budgets& budgets, Counters* shown = nullptr) : shown_(shown) { set_bounds(budgets); }
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // Of this user and session: the one that there is, or a new one. Shared: see Charge.
  std::shared_ptr<Account> account(Owner owner) MILLRACE_EXCLUDES(mutex_);
  // For what is charged once.
  Result<Charge> charge(Resource resource, Owner owner, std::uint64_t amount) MILLRACE_EXCLUDES(mutex_) {
    return account(owner)->charge(resource, amount);
  }

  // What each user has of it who has anything, by user.
  struct UserUse {
    UserId user{};
    std::array<std::uint64_t, kResources> in_use{};
  };
  std::vector<UserUse> users() const MILLRACE_EXCLUDES(mutex_);

  std::size_t accounts() const MILLRACE_EXCLUDES(mutex_);  // that it keeps in mind; gone ones among them

  // From here on. A user who has more than a bound keeps it, and gets nothing more until he has less.
  void set_bounds(const Budgets& budgets);
  Bounds bounds(Resource resource) const;
  std::uint64_t in_use(Resource resource) const { return all_.of(resource); }
  // Nothing more of it is given out.
  bool is_full(Resource resource) const { return in_use(resource) >= bounds(resource).total; }

  // Why `amount` more is refused: which bound, whose, what is in use and by whom, what the client can do and which setting
  // raises it.
  Error explain(Resource resource, Bound over, const Account& account, std::uint64_t amount) const;

 private:
  friend class Account;
  void show_more(Resource resource, std::uint64_t amount);
  void show_less(Resource resource, std::uint64_t amount);
  void forget_unused() MILLRACE_REQUIRES(mutex_);
  std::string users_of(Resource resource) const MILLRACE_EXCLUDES(mutex_);

  // As Bounds. Writer: set_bounds(). Readers: threads that charge; each cell stands for itself.
  struct BoundsInForce {
    std::atomic<std::uint64_t> total, user, session;
    std::atomic<Parts> parts{Parts::kNo};
  };

  std::array<BoundsInForce, kResources> bounds_{};
  Counters* const shown_;
  InUse all_;
  mutable Mutex mutex_;
  std::map<UserId, std::weak_ptr<InUse>> users_ MILLRACE_GUARDED_BY(mutex_);
  std::map<std::pair<UserId, SessionId>, std::weak_ptr<Account>> accounts_ MILLRACE_GUARDED_BY(mutex_);
  std::size_t forget_at_ MILLRACE_GUARDED_BY(mutex_) = 64;
};

}  // namespace millrace
