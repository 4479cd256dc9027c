// Connecting to a Unix socket, with a deadline. Thread-safe.
#pragma once

#include <string>

#include "client/src/wire/deadline.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {
inline namespace client {

// `type`: SOCK_STREAM or SOCK_SEQPACKET. REQUIRES: the path fits. The error's message is errno's text alone.
Result<UniqueFd> connect_unix(const std::string& path, int type, Deadline deadline);

// How long sends and receives (and connects) of `socket` may wait from here on.
void set_timeouts(int socket, Deadline deadline);

}  // namespace client
}  // namespace millrace
