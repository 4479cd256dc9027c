// Which file systems are NFS with Kerberos. There a user's rights hang on the user's own tickets, which a service has
// not: what the kernel would answer the opener is not what it answers the user. Thread-safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "proto/base/mutex.h"
#include "proto/base/result.h"

namespace millrace {

// The devices of such mounts in the text of a /proc/PID/mountinfo.
std::vector<dev_t> kerberos_devices(std::string_view mountinfo);

class KerberosMounts {
 public:
  // Whether the file system with this device number is one. Looks into /proc/self/mountinfo for a device that it has
  // not seen for some seconds; never for those that lie on a disk. kUnavailable: that cannot be read.
  Result<bool> has(dev_t device) MILLRACE_EXCLUDES(mutex_);

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<bool> remembered(dev_t device) MILLRACE_EXCLUDES(mutex_);

  Mutex mutex_;
  std::map<dev_t, bool> seen_ MILLRACE_GUARDED_BY(mutex_);
  Clock::time_point looked_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
