// What jobs cost: the sessions of one user that named one job, whether they were one after the other or at once, those
// that are closed included.
//
//   opens(user, name) ──▶ his account of that name  ──SessionCosts adds──▶ closes()
//                    └──▶ his "other", where all names have open sessions
//
// The table is bounded. A new name that finds no room has that of the job whose last session closed the longest ago, and
// the costs of that one go to its user's "other". Likewise users: the one who has had no session for the longest
// goes to the "other" of nobody, kOtherUsers.
//
// Thread-bound(control).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "daemon/observe/cost.h"

namespace millrace {

class JobCosts {
 public:
  static constexpr std::size_t kMostNames = 64;  // of a user, beside "other"
  static constexpr std::size_t kMostJobs = 256;  // of all users, likewise
  static constexpr std::size_t kMostUsers = 64;
  static constexpr std::uint32_t kOtherUsers = ~0U;  // no user has this number
  static constexpr std::string_view kOther = "other";

  // The account of a session that is opened now. Kept by it until it is closed, and by batches under way.
  std::shared_ptr<JobAccount> opens(std::uint32_t user, std::string_view name);
  void closes(JobAccount& job);

  // Of `all` CPU time of the daemon, the part of no job: its own. What is under way is that until its accounts have it, so
  // this stays as it was then, and never falls.
  std::chrono::nanoseconds own_of(std::chrono::nanoseconds all);

  // step(user, name, account), user by user; "other" is the last of each, and is left out as long as it is empty.
  template <class Step>
  void for_each(Step step) const {
    for (const auto& [user, jobs] : users_) {
      for (const auto& [name, account] : jobs.by_name) step(user, std::string_view(name), *account);
      if (jobs.other->sessions > 0) step(user, kOther, *jobs.other);
    }
  }

 private:
  using ByName = std::map<std::string, std::shared_ptr<JobAccount>, std::less<>>;
  struct User {
    ByName by_name;
    std::shared_ptr<JobAccount> other = std::make_shared<JobAccount>();
  };
  using Users = std::map<std::uint32_t, User>;

  Users::value_type& user_of(std::uint32_t user);
  bool make_room(Users::value_type& of_user);
  bool fold_oldest_of(User& user);
  bool fold_oldest();
  bool fold_oldest_user();

  Users users_;
  std::size_t jobs_ = 0;    // in all by_name
  std::uint64_t used_ = 0;  // opened and closed so far
  std::chrono::nanoseconds own_{0};
};

}  // namespace millrace
