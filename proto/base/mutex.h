// std::mutex and std::condition_variable with clang's thread-safety annotations, so that a member read without its lock
// does not compile (clang: -Wthread-safety; g++ ignores them). Thread-safe.
//
//   Mutex mutex_;
//   int count_ MILLRACE_GUARDED_BY(mutex_);
//   void add() { MutexLock lock(mutex_); ++count_; }
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define MILLRACE_ANNOTATE(x) __attribute__((x))
#else
#define MILLRACE_ANNOTATE(x)
#endif

#define MILLRACE_GUARDED_BY(mutex) MILLRACE_ANNOTATE(guarded_by(mutex))
#define MILLRACE_REQUIRES(mutex) MILLRACE_ANNOTATE(requires_capability(mutex))
#define MILLRACE_EXCLUDES(mutex) MILLRACE_ANNOTATE(locks_excluded(mutex))

namespace millrace {

class MILLRACE_ANNOTATE(capability("mutex")) Mutex {
 public:
  void lock() MILLRACE_ANNOTATE(acquire_capability()) { mutex_.lock(); }
  void unlock() MILLRACE_ANNOTATE(release_capability()) { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

class MILLRACE_ANNOTATE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) MILLRACE_ANNOTATE(acquire_capability(mutex)) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() MILLRACE_ANNOTATE(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits name no predicate: write `while (!ready_) condition_.wait_until(mutex_, deadline)` so that the analysis sees
// the guarded reads.
class Condition {
 public:
  void wait(Mutex& mutex) MILLRACE_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // false when `deadline` passed first.
  bool wait_until(Mutex& mutex, std::chrono::steady_clock::time_point deadline) MILLRACE_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool woken = condition_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return woken;
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace millrace
