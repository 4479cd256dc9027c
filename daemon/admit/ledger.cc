#include "daemon/admit/ledger.h"

#include <algorithm>
#include <string>
#include <vector>

namespace millrace {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;  // cells publish nothing but themselves

constexpr std::size_t kUsersTold = 4;  // in a refusal

bool add_within(std::atomic<std::uint64_t>& cell, std::uint64_t amount, std::uint64_t bound) {
  std::uint64_t used = cell.load(kRelaxed);
  do {
    if (amount > bound || used > bound - amount) return false;
  } while (!cell.compare_exchange_weak(used, used + amount, kRelaxed));
  return true;
}

// Whether `of_user`, which `in_all` has in it, is more than a part of `total`.
bool over_part(std::uint64_t of_user, std::uint64_t in_all, std::uint64_t total) {
  const std::uint64_t free = total > in_all ? total - in_all : 0;
  return of_user / kTimesFree > free || (of_user / kTimesFree == free && of_user % kTimesFree > 0);
}

// So much more may a user of `of_user` have before he has more than his part.
std::uint64_t room_in_part(std::uint64_t of_user, std::uint64_t in_all, std::uint64_t total) {
  const std::uint64_t free = total > in_all ? total - in_all : 0;
  const std::uint64_t part = free / (kTimesFree + 1) * kTimesFree;
  return part - std::min(part, of_user / (kTimesFree + 1));
}

std::string whose(Bound over, Owner owner) {
  if (over == Bound::kUser) return " of user " + std::to_string(raw(owner.user));
  return over == Bound::kSession ? " of this session" : "";
}

std::string_view who(Bound over) {
  if (over == Bound::kUser || over == Bound::kPart) return "a user";
  return over == Bound::kSession ? "a session" : "all together";
}

}  // namespace

Charge& Charge::operator=(Charge&& other) noexcept {
  if (this == &other) return *this;
  refund();
  account_ = std::move(other.account_);
  resource_ = other.resource_;
  amount_ = std::exchange(other.amount_, 0);
  return *this;
}

void Charge::absorb(Charge other) {
  if (!account_) {
    *this = std::move(other);
    return;
  }
  MILLRACE_CHECK(!other.account_ || (other.account_ == account_ && other.resource_ == resource_));
  amount_ += std::exchange(other.amount_, 0);
}

void Charge::shrink_to(std::uint64_t amount) {
  MILLRACE_CHECK(amount <= amount_);
  const std::uint64_t before = std::exchange(amount_, amount);
  if (before != amount) account_->subtract(resource_, before - amount);
  if (amount == 0) account_.reset();
}

std::optional<Bound> Account::add(Resource resource, std::uint64_t amount) {
  const Bounds bounds = ledger_.bounds(resource);
  if (!add_within(ledger_.all_[resource], amount, bounds.total)) return Bound::kTotal;
  const bool has_session = raw(owner_.session) != 0;
  if (!add_within((*users_)[resource], amount, bounds.user)) {
    ledger_.all_[resource].fetch_sub(amount, kRelaxed);
    return Bound::kUser;
  }
  if (!add_within(own_[resource], amount, has_session ? bounds.session : kUnbounded)) {
    ledger_.all_[resource].fetch_sub(amount, kRelaxed);
    (*users_)[resource].fetch_sub(amount, kRelaxed);
    return Bound::kSession;
  }
  if (bounds.parts == Parts::kOfFree && is_over_part(resource)) {
    take_off(resource, amount);
    return Bound::kPart;
  }
  ledger_.show_more(resource, amount);
  return std::nullopt;
}

void Account::take_off(Resource resource, std::uint64_t amount) {
  own_[resource].fetch_sub(amount, kRelaxed);
  (*users_)[resource].fetch_sub(amount, kRelaxed);
  ledger_.all_[resource].fetch_sub(amount, kRelaxed);
}

void Account::subtract(Resource resource, std::uint64_t amount) {
  take_off(resource, amount);
  ledger_.show_less(resource, amount);
}

bool Account::is_over_part(Resource resource) const {
  const Bounds bounds = ledger_.bounds(resource);
  return bounds.parts == Parts::kOfFree && over_part(users_->of(resource), ledger_.in_use(resource), bounds.total);
}

std::uint64_t Account::in_use(Resource resource, Bound of) const {
  if (of == Bound::kTotal) return ledger_.in_use(resource);
  return of == Bound::kUser ? users_->of(resource) : own_.of(resource);
}

Result<Charge> Account::charge(Resource resource, std::uint64_t amount) {
  if (const std::optional<Bound> over = add(resource, amount)) return ledger_.explain(resource, *over, *this, amount);
  return Charge(shared_from_this(), resource, amount);
}

std::optional<Charge> Account::try_charge(Resource resource, std::uint64_t amount) {
  if (add(resource, amount)) return std::nullopt;
  return Charge(shared_from_this(), resource, amount);
}

Charge Account::take(Resource resource, std::uint64_t amount) {
  own_[resource].fetch_add(amount, kRelaxed);
  (*users_)[resource].fetch_add(amount, kRelaxed);
  ledger_.all_[resource].fetch_add(amount, kRelaxed);
  ledger_.show_more(resource, amount);
  return Charge(shared_from_this(), resource, amount);
}

std::shared_ptr<Account> Ledger::account(Owner owner) {
  MutexLock lock(mutex_);
  std::weak_ptr<Account>& known = accounts_[{owner.user, owner.session}];
  if (std::shared_ptr<Account> account = known.lock()) return account;
  std::weak_ptr<InUse>& known_user = users_[owner.user];
  std::shared_ptr<InUse> user = known_user.lock();
  if (!user) known_user = user = std::make_shared<InUse>();
  auto account = std::make_shared<Account>(*this, owner, std::move(user));
  known = account;
  forget_unused();
  return account;
}

void Ledger::set_bounds(const Budgets& budgets) {
  for (std::size_t i = 0; i < kResources; ++i) {
    const Bounds& bounds = budgets[static_cast<Resource>(i)];
    bounds_[i].total.store(bounds.total, kRelaxed);
    bounds_[i].user.store(bounds.user, kRelaxed);
    bounds_[i].session.store(bounds.session, kRelaxed);
    bounds_[i].parts.store(bounds.parts, kRelaxed);
  }
}

Bounds Ledger::bounds(Resource resource) const {
  const BoundsInForce& bounds = bounds_[static_cast<std::size_t>(resource)];
  return {bounds.total.load(kRelaxed), bounds.user.load(kRelaxed), bounds.session.load(kRelaxed),
          bounds.parts.load(kRelaxed)};
}

void Ledger::show_more(Resource resource, std::uint64_t amount) {
  if (shown_ == nullptr) return;
  if (const std::optional<MetricId> gauge = row_of(resource).gauge) shown_->add(*gauge, amount);
}

void Ledger::show_less(Resource resource, std::uint64_t amount) {
  if (shown_ == nullptr) return;
  if (const std::optional<MetricId> gauge = row_of(resource).gauge) shown_->subtract(*gauge, amount);
}

std::vector<Ledger::UserUse> Ledger::users() const {
  std::vector<UserUse> users;
  MutexLock lock(mutex_);
  for (const auto& [id, known] : users_) {
    const std::shared_ptr<InUse> in_use = known.lock();
    if (!in_use) continue;
    UserUse user{.user = id};
    for (std::size_t i = 0; i < kResources; ++i) user.in_use[i] = in_use->of(static_cast<Resource>(i));
    if (std::ranges::any_of(user.in_use, [](std::uint64_t amount) { return amount > 0; })) users.push_back(user);
  }
  return users;
}

std::size_t Ledger::accounts() const {
  MutexLock lock(mutex_);
  return accounts_.size();
}

// Once in a while: as many entries are looked at as were made since the last time.
void Ledger::forget_unused() {
  if (accounts_.size() < forget_at_) return;
  std::erase_if(accounts_, [](const auto& entry) { return entry.second.expired(); });
  std::erase_if(users_, [](const auto& entry) { return entry.second.expired(); });
  forget_at_ = 64 + 2 * accounts_.size();
}

// " (user 1001: 63 MB, user 1000: 2 MB)", who has most first.
std::string Ledger::users_of(Resource resource) const {
  std::vector<std::pair<std::uint64_t, UserId>> users;
  {
    MutexLock lock(mutex_);
    for (const auto& [user, known] : users_) {
      const std::shared_ptr<InUse> in_use = known.lock();
      if (in_use && in_use->of(resource) > 0) users.emplace_back(in_use->of(resource), user);
    }
  }
  if (users.empty()) return {};
  std::sort(users.rbegin(), users.rend());
  std::string text;
  for (std::size_t i = 0; i < std::min(users.size(), kUsersTold); ++i)
    text += (text.empty() ? " (user " : ", user ") + std::to_string(raw(users[i].second)) + ": " +
            to_text(Bytes{users[i].first});
  if (users.size() > kUsersTold) text += ", and " + std::to_string(users.size() - kUsersTold) + " more";
  return text + ")";
}

Error Ledger::explain(Resource resource, Bound over, const Account& account, std::uint64_t amount) const {
  const ResourceRow& row = row_of(resource);
  const Bound of = over == Bound::kPart ? Bound::kTotal : over;
  const std::uint64_t bound = bounds(resource).of(of);
  std::string text = row.where.empty() ? "" : std::string(row.where) + ": ";
  if (row.unit == Unit::kBytes) {
    text += std::string(row.noun) + whose(over, account.owner()) + ": " + to_text(Bytes{amount}) + " asked for, " +
            to_text(Bytes{account.in_use(resource, of)}) + " of " + to_text(Bytes{bound}) + " in use";
    if (of == Bound::kTotal) text += users_of(resource);
    if (over == Bound::kPart)
      text += ", and the rest is kept for others but for " +
              to_text(Bytes{room_in_part(account.in_use(resource, Bound::kUser), in_use(resource), bound)});
  } else if (amount > bound && amount > 1) {
    text += std::string(row.noun) + ": " + std::to_string(amount) + " asked for, " + std::string(who(over)) +
            " may have " + std::to_string(bound);
  } else {
    text += std::to_string(bound) + ' ' + std::string(row.noun) + whose(over, account.owner()) + ' ' +
            std::string(row.state);
  }
  text += ": " + std::string(row.instead);
  if (const std::string_view setting = setting_of(row, over); !setting.empty())
    text += ", or raise " + std::string(setting) + " in the daemon's settings";
  return Error{Code::kExhausted, std::move(text)};
}

}  // namespace millrace
