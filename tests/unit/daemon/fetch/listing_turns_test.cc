// Who waits for whom when folders are listed: users take turns, and roots do not wait for each other.
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "daemon/fetch/fetcher.h"
#include "daemon/fetch/list/listing.h"
#include "daemon/fetch/list/listing_thread.h"
#include "proto/base/mutex.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"

namespace millrace {
namespace {

constexpr uid_t kRoot = 0, kAlice = kRoot, kBob = 54'001;  // a user without a right to a folder is answered, too

// Listings of folders with one file, whose ends are noted; one of them can be held in its last call.
class TurnsRig {
 public:
  explicit TurnsRig(std::vector<std::string> names) {
    for (const std::string& name : names) {
      std::filesystem::create_directory(folder_ / name);
      write_file(folder_ / (name + "/a.jpg"), std::string("x"));
      roots_.push_back(folder_ / name);
    }
    fetcher_ = *Fetcher::create({.roots = roots_, .threads = 1}, counters_);
  }

  bool list(std::size_t root, uid_t user) {
    return fetcher_->try_list({.path_untrusted = roots_[root],
                               .caller = std::make_shared<const Caller>(Caller{.uid = user, .gid = user}),
                               .max_files = 1'000,
                               .done = [this, user](const auto&) { ended(user); }});
  }
  void list(const std::string& path, uid_t user, const std::function<void()>& then) {
    MILLRACE_CHECK(fetcher_->try_list({.path_untrusted = path,
                                       .caller = std::make_shared<const Caller>(Caller{.uid = user, .gid = user}),
                                       .max_files = 1'000'000,
                                       .done = [this, user, then](const auto&) {
                                         then();
                                         ended(user);
                                       }}));
  }
  std::string add_folder(const std::string& name, std::uint32_t files) {
    std::filesystem::create_directory(folder_ / name);
    for (std::uint32_t i = 0; i < files; ++i)
      write_file(folder_ / (name + "/" + std::to_string(i) + ".jpg"), std::string("x"));
    return folder_ / name;
  }
  // Returns once the thread that lists there is held.
  void hold(std::size_t root) {
    std::promise<void> held;
    REQUIRE(fetcher_->try_list({.path_untrusted = roots_[root],
                                .caller = std::make_shared<const Caller>(Caller{.uid = kAlice}),
                                .max_files = 1'000,
                                .done = [&held, go_on = go_on_](const auto&) {
                                  held.set_value();
                                  go_on.wait();
                                }}));
    held.get_future().wait();
  }
  void go_on() { release_.set_value(); }

  std::vector<uid_t> ends(std::size_t count) {
    MutexLock lock(mutex_);
    while (ends_.size() < count) changed_.wait(mutex_);
    return ends_;
  }

 private:
  void ended(uid_t user) {
    MutexLock lock(mutex_);
    ends_.push_back(user);
    changed_.notify_all();
  }

  TempFolder folder_;
  std::vector<std::string> roots_;
  Counters counters_;
  std::promise<void> release_;
  std::shared_future<void> go_on_ = release_.get_future().share();
  Mutex mutex_;
  Condition changed_;
  std::vector<uid_t> ends_ MILLRACE_GUARDED_BY(mutex_);
  std::unique_ptr<Fetcher> fetcher_;  // goes first
};

}  // namespace

TEST_CASE("who lists one folder does not wait for all that another has asked for", "[fetch]") {
  TurnsRig rig({"a"});
  rig.hold(0);
  for (int i = 0; i < 40; ++i) REQUIRE(rig.list(0, kAlice));
  REQUIRE(rig.list(0, kBob));

  rig.go_on();
  const std::vector<uid_t> ends = rig.ends(41);

  REQUIRE(std::find(ends.begin(), ends.end(), kBob) - ends.begin() <= 1);
}

TEST_CASE("who asks for one folder after the other, each soon done, does not hold up another's large one", "[fetch]") {
  constexpr std::size_t kSmall = 500;
  constexpr int kSteps = 4;
  TurnsRig rig({"a"});
  const std::string large = rig.add_folder("a/large", kSteps * Listing::kStep);
  std::atomic<std::size_t> asked{0};
  std::function<void()> ask = [&] {                               // while the one before is at its last step
    if (asked.fetch_add(1) < kSmall) rig.list(large, kBob, ask);  // refused, at once
  };
  rig.hold(0);
  ask();
  rig.list(large, kRoot, [] {});

  rig.go_on();
  const std::vector<uid_t> ends = rig.ends(kSmall + 1);

  REQUIRE(std::find(ends.begin(), ends.end(), kRoot) - ends.begin() <= 4 * kSteps);
}

TEST_CASE("one user's listings that wait keep no room from another's", "[fetch]") {
  TurnsRig rig({"a"});
  rig.hold(0);
  std::size_t taken = 0;
  while (taken < 10'000 && rig.list(0, kAlice)) ++taken;

  const bool other = rig.list(0, kBob);
  rig.go_on();

  REQUIRE(taken == ListingThread::kMostWaiting);
  REQUIRE(other);
}

TEST_CASE("a folder that does not answer holds up no listing beneath another root", "[fetch]") {
  TurnsRig rig({"hung", "well"});
  rig.hold(0);

  REQUIRE(rig.list(1, kBob));
  const std::vector<uid_t> ends = rig.ends(1);
  rig.go_on();

  REQUIRE(ends == std::vector<uid_t>{kBob});
}

}  // namespace millrace
