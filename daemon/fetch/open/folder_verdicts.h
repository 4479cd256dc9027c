// Which folders a caller has lately been found allowed to reach, by the path that was walked and the folder found
// there, so that reading the thousandth file of a folder does not walk to it again. Only permissions are kept, refusals
// are not. Thread-safe.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <string>
#include <string_view>
#include <unordered_map>

#include "daemon/model/caller.h"
#include "proto/base/mutex.h"

namespace millrace {

class FolderVerdicts {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kLifetime{2000};  // how long a revoked permission may go on working
  static constexpr std::size_t kMost = 4096;

  // Whether `caller` was allowed, less than kLifetime before `now`, to reach the very folder `found` by `path`.
  bool allowed(const Caller& caller, std::string_view path, const struct stat& found, Clock::time_point now) const
      MILLRACE_EXCLUDES(mutex_);

  void allow(const Caller& caller, std::string_view path, const struct stat& found, Clock::time_point now)
      MILLRACE_EXCLUDES(mutex_);

 private:
  struct Verdict {
    dev_t device;
    ino_t inode;
    Clock::time_point since;
  };

  mutable Mutex mutex_;
  std::unordered_map<std::string, Verdict> verdicts_ MILLRACE_GUARDED_BY(mutex_);  // by caller and path
};

}  // namespace millrace
