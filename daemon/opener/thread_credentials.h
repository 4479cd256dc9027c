// The user and groups as whom this thread opens files. They are the file system's alone (setfsuid(2), setfsgid(2),
// setgroups(2)), and this thread's alone: raw system calls, because the C library's setgroups() changes all threads.
// What the thread is to signals and debuggers stays as it was. Thread-bound(its thread).
#pragma once

#include <memory>

#include "daemon/model/caller.h"
#include "proto/base/result.h"

namespace millrace {

class ThreadCredentials {
 public:
  // From here on the kernel decides for `who`. Nothing where that is so already. kInternal: the kernel did not do it;
  // nothing may be opened then.
  Result<void> put_on(const std::shared_ptr<const Caller>& who);

 private:
  std::shared_ptr<const Caller> worn_;  // null: unknown
};

}  // namespace millrace
