#include "daemon/observe/job_costs.h"

#include <algorithm>

namespace millrace {
namespace {

// Nobody adds to it any more: neither a session nor a batch under way has it.
bool is_over(const std::shared_ptr<JobAccount>& account) {
  return account->open == 0 && account.use_count() == 1;
}

void fold(const JobAccount& from, JobAccount& into) {
  into.costs.add(from.costs.at(CostAccount::Clock::now()));
  into.sessions += from.sessions;
  into.used = std::max(into.used, from.used);
}

// The one that was used the longest ago; end(): none is over.
template <class ByName>
auto oldest_in(ByName& by_name) {
  auto oldest = by_name.end();
  for (auto one = by_name.begin(); one != by_name.end(); ++one) {
    if (is_over(one->second) && (oldest == by_name.end() || one->second->used < oldest->second->used)) oldest = one;
  }
  return oldest;
}

}  // namespace

std::shared_ptr<JobAccount> JobCosts::opens(std::uint32_t user, std::string_view name) {
  Users::value_type& entry = user_of(user);
  User& his = entry.second;
  auto found = his.by_name.find(name);
  if (found == his.by_name.end() && name != kOther && make_room(entry)) {
    found = his.by_name.emplace(name, std::make_shared<JobAccount>()).first;
    ++jobs_;
  }
  std::shared_ptr<JobAccount> account = found == his.by_name.end() ? his.other : found->second;
  ++account->sessions;
  ++account->open;
  account->used = ++used_;
  return account;
}

void JobCosts::closes(JobAccount& job) {
  --job.open;
  job.used = ++used_;
}

std::chrono::nanoseconds JobCosts::own_of(std::chrono::nanoseconds all) {
  const auto now = CostAccount::Clock::now();
  for_each([&](std::uint32_t, std::string_view, const JobAccount& job) { all -= job.costs.at(now).cpu(); });
  return own_ = std::max(own_, all);
}

// A further user where all have sessions is one of the others.
JobCosts::Users::value_type& JobCosts::user_of(std::uint32_t user) {
  const auto found = users_.find(user);
  if (found != users_.end()) return *found;
  const bool has_room = users_.size() < kMostUsers || fold_oldest_user();
  return *users_.try_emplace(has_room ? user : kOtherUsers).first;
}

bool JobCosts::make_room(Users::value_type& of_user) {
  if (of_user.first == kOtherUsers) return false;
  if (of_user.second.by_name.size() >= kMostNames) return fold_oldest_of(of_user.second);
  return jobs_ < kMostJobs || fold_oldest();
}

bool JobCosts::fold_oldest_of(User& user) {
  const auto oldest = oldest_in(user.by_name);
  if (oldest == user.by_name.end()) return false;
  fold(*oldest->second, *user.other);
  user.by_name.erase(oldest);
  --jobs_;
  return true;
}

bool JobCosts::fold_oldest() {
  User* of_user = nullptr;
  std::uint64_t used = ~0ULL;
  for (auto& [id, user] : users_) {
    const auto oldest = oldest_in(user.by_name);
    if (oldest == user.by_name.end() || oldest->second->used >= used) continue;
    used = oldest->second->used;
    of_user = &user;
  }
  return of_user != nullptr && fold_oldest_of(*of_user);
}

bool JobCosts::fold_oldest_user() {
  auto oldest = users_.end();
  std::uint64_t used = ~0ULL;
  for (auto one = users_.begin(); one != users_.end(); ++one) {
    const auto& [id, user] = *one;
    std::uint64_t last = user.other->used;
    bool all_over = id != kOtherUsers && is_over(user.other);
    for (const auto& [name, account] : user.by_name) {
      all_over = all_over && is_over(account);
      last = std::max(last, account->used);
    }
    if (!all_over || last >= used) continue;
    used = last;
    oldest = one;
  }
  if (oldest == users_.end()) return false;
  User gone = std::move(users_.extract(oldest).mapped());
  JobAccount& others = *users_[kOtherUsers].other;
  for (const auto& [name, account] : gone.by_name) fold(*account, others);
  fold(*gone.other, others);
  jobs_ -= gone.by_name.size();
  return true;
}

}  // namespace millrace
