#include "daemon/fetch/crew.h"

#include <pthread.h>

#include <iterator>
#include <string>
#include <system_error>

#include "daemon/fetch/fetcher.h"

namespace millrace {

bool Crew::Member::is_stuck() const {
  const std::int64_t since = since_.load(std::memory_order_relaxed);
  constexpr std::int64_t kPatience = std::chrono::steady_clock::duration(kStuck).count();
  return state_.load() == State::kWanted && since != kIdle && now() - since >= kPatience;
}

void Crew::begin(std::uint32_t members) {
  MutexLock lock(mutex_);
  for (std::uint32_t i = 0; i < members; ++i) start();
}

Crew::Member& Crew::start() {
  Member& member = members_.emplace_back();
  try {
    member.thread_ = std::thread([this, &member] {
      work_(member);
      member.state_.store(Member::State::kEnded);
    });
  } catch (const std::system_error&) {
    members_.pop_back();
    throw;
  }
  pthread_setname_np(member.thread_.native_handle(), ("mr-fetch-" + std::to_string(started_++)).c_str());
  return member;
}

void Crew::relieve() {
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
    try {
      Member& stand_in = start();
      auto was = Member::State::kWanted;
      // It may have ended its task at this moment: then the stand-in is one too many.
      if (!member.state_.compare_exchange_strong(was, Member::State::kRelieved))
        stand_in.state_.store(Member::State::kRelieved);
    } catch (const std::system_error& error) {
      return no_thread_.warn(std::string("a read does not come back, and no thread can be had in its place: ") +
                             error.what());
    }
  }
}

void Crew::join() {
  std::list<Member> all;
  {
    MutexLock lock(mutex_);
    all.swap(members_);
  }
  for (Member& member : all) member.thread_.join();
}

}  // namespace millrace
