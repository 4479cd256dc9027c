// Who has a lane's staging: each half's thread its half, at the same time, or one of them all of it, alone. Who wants all
// of it goes before those who come after. Thread-safe.
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

 private:
  void begin(bool whole) MILLRACE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (whole) {
      ++waiting_for_whole_;
      while (halves_ > 0 || is_whole_) changed_.wait(mutex_);
      --waiting_for_whole_;
      is_whole_ = true;
    } else {
      while (is_whole_ || waiting_for_whole_ > 0) changed_.wait(mutex_);
      ++halves_;
    }
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

  Mutex mutex_;
  Condition changed_;
  std::uint32_t halves_ MILLRACE_GUARDED_BY(mutex_) = 0, waiting_for_whole_ MILLRACE_GUARDED_BY(mutex_) = 0;
  bool is_whole_ MILLRACE_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace
