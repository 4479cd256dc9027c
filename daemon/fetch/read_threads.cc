#include "daemon/fetch/read_threads.h"

#include <iterator>
#include <string>
#include <utility>

#include "proto/base/start_thread.h"

namespace millrace {

bool ReadThreads::Member::is_stuck() const {
  const std::int64_t since = since_.load(std::memory_order_relaxed);
  constexpr std::int64_t kPatience = std::chrono::steady_clock::duration(kStuck).count();
  return state_.load() == State::kWanted && since != kIdle && now() - since >= kPatience;
}

Result<void> ReadThreads::begin(std::uint32_t members) {
  MutexLock lock(mutex_);
  for (std::uint32_t i = 0; i < members; ++i) {
    MILLRACE_TRY_VOID(start());
  }
  return {};
}

Result<ReadThreads::Member*> ReadThreads::start() {
  Member& member = members_.emplace_back();
  Result<std::thread> thread =
      start_thread(("mr-fetch-" + std::to_string(started_++ % 1'000)).c_str(), [&member, work = work_of_one_()] {
        work(member);
        member.state_.store(Member::State::kEnded);
      });
  if (!thread) {
    members_.pop_back();
    return std::move(thread).error();
  }
  member.thread_ = *std::move(thread);
  return &member;
}

void ReadThreads::relieve() {
  MutexLock lock(mutex_);
  std::size_t relieved = 0;
  for (auto member = members_.begin(); member != members_.end();) {
    const Member::State state = member->state_.load();
    if (state == Member::State::kRelieved) ++relieved;
    if (state == Member::State::kEnded) member->thread_.join();
    member = state == Member::State::kEnded ? members_.erase(member) : std::next(member);
  }
  for (Member& member : members_) {
    if (!member.is_stuck()) continue;
    if (relieved++ >= kMostStandIns) return;
    const Result<Member*> stand_in = start();
    if (!stand_in)
      return no_thread_.warn("nothing stands in for a read that does not come back: " + stand_in.error().message);
    auto was = Member::State::kWanted;
    // It may have ended its task at this moment: then the stand-in is one too many.
    if (!member.state_.compare_exchange_strong(was, Member::State::kRelieved))
      (*stand_in)->state_.store(Member::State::kRelieved);
  }
}

void ReadThreads::join() {
  std::list<Member> all;
  {
    MutexLock lock(mutex_);
    all.swap(members_);
  }
  for (Member& member : all) member.thread_.join();
}

}  // namespace millrace
