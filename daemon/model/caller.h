// Who is asking: what the kernel says of the process at the other end of the hand-off socket. Immutable.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "proto/base/ids.h"
#include "proto/base/unique_fd.h"

namespace millrace {

// A client's own connection to the hand-off socket, by which an opener asks the kernel who the client is
// (fetch/open/opener_link.h). Thread-safe.
struct HandoffConnection {
  UniqueFd fd;
  // Its number with the opener; 0: none yet. Writers, readers: threads that open files. Publishes nothing but itself.
  mutable std::atomic<std::uint64_t> introduced{0};
};

struct Caller {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary
  pid_t pid = 0;
  std::shared_ptr<const HandoffConnection> connection;  // null: of no client's

  UserId user() const { return UserId{uid}; }
};

}  // namespace millrace
