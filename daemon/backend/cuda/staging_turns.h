// Who has a lane's staging: each half's thread its half, at the same time, or one of them all of it, alone. In the order in
// which they come. Thread-safe.
#pragma once

#include <cstdint>

#include "proto/base/mutex.h"

namespace millrace {

class StagingTurns {
 public:
  // Ends with its owner.
  class Turn {
   public:
    Turn(StagingTurns& of, bool whole) : of_(of), whole_(whole) { of_.begin(whole_); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { of_.end(whole_); }

   private:
    StagingTurns& of_;
    const bool whole_;
  };

  std::uint64_t waiting() const MILLRACE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return next_ - turn_;
  }

 private:
  void begin(bool whole) MILLRACE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const std::uint64_t number = next_++;
    while (number != turn_ || is_whole_ || (whole && halves_ > 0)) changed_.wait(mutex_);
    ++turn_;
    if (whole)
      is_whole_ = true;
    else
      ++halves_;
    changed_.notify_all();
  }
  void end(bool whole) MILLRACE_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (whole)
        is_whole_ = false;
      else
        --halves_;
    }
    changed_.notify_all();
  }

  mutable Mutex mutex_;
  Condition changed_;
  std::uint64_t next_ MILLRACE_GUARDED_BY(mutex_) = 0, turn_ MILLRACE_GUARDED_BY(mutex_) = 0;  // in order of arrival
  std::uint32_t halves_ MILLRACE_GUARDED_BY(mutex_) = 0;
  bool is_whole_ MILLRACE_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace
