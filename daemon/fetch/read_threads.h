// The threads that read samples. One that has been at the same item for kStuck (fetcher.h) may never come back; a
// stand-in does its work meanwhile, and the thread ends once its read is back:
//
//   reads ──kStuck──▶ relieved: a stand-in is started ──read comes back──▶ ends; the stand-in stays in its place
//
// So as many threads get on as the settings say. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <thread>

#include "daemon/fetch/fetcher.h"
#include "daemon/observe/bounded_log.h"
#include "proto/base/mutex.h"
#include "proto/base/result.h"

namespace millrace {

class ReadThreads {
 public:
  class Member {
   public:
    // Called on its thread: it begins with an item. `watch` is told, too.
    void gets_on(FetchWatch* watch) {
      since_.store(now(), std::memory_order_relaxed);
      if (watch != nullptr) watch->since.store(since_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    // The same, once a task is done: it waits for the next. false: another thread has its place, and it is to end.
    bool is_wanted() {
      since_.store(kIdle, std::memory_order_relaxed);
      return state_.load() == State::kWanted;
    }

   private:
    friend class ReadThreads;
    enum class State : std::uint8_t { kWanted, kRelieved, kEnded };
    static constexpr std::int64_t kIdle = 0;

    static std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
    bool is_stuck() const;

    std::atomic<std::int64_t> since_{kIdle};  // it began with its item, on the steady clock
    std::atomic<State> state_{State::kWanted};
    std::thread thread_;
  };
  using Work = std::function<void(Member&)>;  // returns when there is nothing to do any more, or it is not wanted

  // `work_of_one`: called for each thread before it is started, by who starts it.
  explicit ReadThreads(std::function<Work()> work_of_one) : work_of_one_(std::move(work_of_one)) {}
  ReadThreads(const ReadThreads&) = delete;
  ReadThreads& operator=(const ReadThreads&) = delete;
  // REQUIRES: join() was called.
  ~ReadThreads() = default;

  // kUnavailable: no thread can be had; join() is to be called all the same.
  Result<void> begin(std::uint32_t members) MILLRACE_EXCLUDES(mutex_);
  // See Fetcher::relieve().
  void relieve() MILLRACE_EXCLUDES(mutex_);
  // Waits for all; `work` has to return. No relieve() after it, nor at the same time.
  void join() MILLRACE_EXCLUDES(mutex_);

 private:
  Result<Member*> start() MILLRACE_REQUIRES(mutex_);

  const std::function<Work()> work_of_one_;
  Mutex mutex_;
  std::uint32_t started_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::list<Member> members_ MILLRACE_GUARDED_BY(mutex_);  // those that ended as well, until the next look
  SeldomLine no_thread_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
