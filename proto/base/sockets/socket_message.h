// One message over a Unix socket, with descriptors beside its bytes (SCM_RIGHTS, unix(7)). A system call each, no
// memory but for descriptors that came. Thread-safe: plain functions.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <vector>

#include "proto/base/unique_fd.h"

namespace millrace {

inline constexpr std::size_t kMostDescriptors = 253;  // in one message: the kernel's bound

// As sendmsg() with `flags` and MSG_NOSIGNAL: the bytes sent, or -1 and errno. The descriptors stay the caller's.
// REQUIRES: at most kMostDescriptors.
ssize_t send_message(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors, int flags = 0);

struct ReceivedMessage {
  ssize_t bytes = -1;                 // as of recvmsg(): -1 and errno, 0 at the end
  std::vector<UniqueFd> descriptors;  // close-on-exec; whatever came is owned here
  bool dropped = false;               // more descriptors came than there was room for, and are gone
};

// As recvmsg() with `flags` and MSG_CMSG_CLOEXEC. `most_descriptors`: room for so many or, by padding, one more.
// REQUIRES: at most kMostDescriptors.
ReceivedMessage receive_message(int socket, std::span<std::byte> bytes, std::size_t most_descriptors, int flags = 0);

}  // namespace millrace
