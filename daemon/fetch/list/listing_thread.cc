#include "daemon/fetch/list/listing_thread.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <variant>

#include "daemon/fetch/list/client_file_list.h"
#include "daemon/fetch/list/listing.h"
#include "daemon/observe/cpu_time.h"

namespace millrace {
namespace {

constexpr std::chrono::milliseconds kBetweenListingLooks{1'000};  // at roots that nobody wants

struct RunningList {
  std::variant<Listing, ClientFileList> listing;
  std::function<void(std::chrono::nanoseconds)> took;
  std::function<void(Listing::Outcome)> done;
  std::chrono::nanoseconds cpu{0};

  std::optional<Listing::Outcome> step() {
    return std::visit([](auto& steps) { return steps.step(); }, listing);
  }
};

RunningList begun(const Roots& roots, ListTask task) {
  if (!task.files.empty()) {
    std::function<void(std::chrono::nanoseconds)> took = std::move(task.took);
    std::function<void(Listing::Outcome)> done = std::move(task.done);
    return RunningList{ClientFileList(roots, std::move(task)), std::move(took), std::move(done)};
  }
  Listing::Request request{std::move(task.path_untrusted),
                           std::move(task.choice),
                           std::move(task.caller),
                           std::move(task.stop),
                           task.max_files,
                           std::move(task.progress),
                           std::move(task.room)};
  return RunningList{Listing(roots, std::move(request)), std::move(task.took), std::move(task.done)};
}

}  // namespace

// A user's listings, in the order of their turns.
struct ListingThread::UnderWay {
  UserId user{};
  std::deque<RunningList> lists;
};

ListingThread::ListingThread(const Roots& roots, const std::string& name) : roots_(roots) {
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), name.c_str());
}

ListingThread::~ListingThread() {
  stopping_.store(true, std::memory_order_relaxed);
  {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  ready_.notify_all();
  thread_.join();
}

bool ListingThread::try_list(ListTask&& task) {
  {
    MutexLock lock(mutex_);
    if (closed_) return false;
    std::deque<ListTask>& of_user = waiting_[task.caller->user()];
    if (of_user.size() >= kMostWaiting) return false;
    of_user.push_back(std::move(task));
  }
  ready_.notify_one();
  return true;
}

void ListingThread::run() {
  std::deque<UnderWay> under_way;  // by whose turn it is
  ThreadStopwatch used;
  while (begin_some(under_way)) {
    UnderWay user = std::move(under_way.front());
    under_way.pop_front();
    RunningList next = std::move(user.lists.front());
    user.lists.pop_front();
    used.lap();
    std::optional<Listing::Outcome> outcome = stopping_.load(std::memory_order_relaxed)
                                                  ? Listing::Outcome(Error{Code::kCancelled, "the daemon is stopping"})
                                                  : next.step();
    next.cpu += used.lap();
    if (outcome) {
      if (next.took) next.took(next.cpu);
      next.done(*std::move(outcome));
    } else {
      user.lists.push_back(std::move(next));
    }
    if (!user.lists.empty()) under_way.push_back(std::move(user));
  }
}

// Waits for one if there is none. false once there is none and will be none.
bool ListingThread::begin_some(std::deque<UnderWay>& under_way) {
  if (under_way.empty()) wait_for_work();
  while (std::optional<ListTask> task = next_to_begin(under_way)) {
    const UserId id = task->caller->user();
    auto user = std::ranges::find(under_way, id, &UnderWay::user);
    if (user == under_way.end()) user = under_way.insert(under_way.end(), UnderWay{.user = id, .lists = {}});
    user->lists.push_back(begun(roots_, *std::move(task)));
  }
  return !under_way.empty();
}

// Of the user who has fewest under way.
std::optional<ListTask> ListingThread::next_to_begin(const std::deque<UnderWay>& under_way) {
  std::size_t all = 0;
  for (const UnderWay& user : under_way) all += user.lists.size();
  if (all >= kMostInTurns) return std::nullopt;
  MutexLock lock(mutex_);
  auto next = waiting_.end();
  std::size_t fewest = all < kInTurns ? kInTurnsOfUser : 1;
  for (auto waiting = waiting_.begin(); waiting != waiting_.end(); ++waiting) {
    const auto user = std::ranges::find(under_way, waiting->first, &UnderWay::user);
    const std::size_t has = user == under_way.end() ? 0 : user->lists.size();
    if (has >= fewest) continue;
    fewest = has;
    next = waiting;
  }
  if (next == waiting_.end()) return std::nullopt;
  ListTask task = std::move(next->second.front());
  next->second.pop_front();
  if (next->second.empty()) waiting_.erase(next);
  return task;
}

// Until there is a listing, or none will come. Meanwhile roots that nobody has wanted for a while are let go of.
void ListingThread::wait_for_work() {
  while (wait_while_idle(roots_.let_go_of_unwanted())) {
  }
}

// Whether there is nothing yet.
bool ListingThread::wait_while_idle(bool holds_roots) {
  MutexLock lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + kBetweenListingLooks;
  while (waiting_.empty() && !closed_) {
    if (!holds_roots) {
      ready_.wait(mutex_);
    } else if (!ready_.wait_until(mutex_, until)) {
      return waiting_.empty() && !closed_;
    }
  }
  return false;
}

}  // namespace millrace
