// Who is asking: what the kernel says of the process at the other end of the hand-off socket. Immutable.
#pragma once

#include <sys/types.h>

#include <vector>

#include "proto/base/ids.h"

namespace millrace {

struct Caller {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary
  pid_t pid = 0;

  UserId user() const { return UserId{uid}; }
};

}  // namespace millrace
