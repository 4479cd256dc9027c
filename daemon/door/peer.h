// The other end of a Unix connection: who it is, what it may send, and how to part from it. System calls only, none of
// them waits. Functions, thread-safe.
#pragma once

#include <sys/types.h>

#include <optional>

#include "daemon/model/caller.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

// Uid, gid, supplementary groups and pid at the time of connect().
Result<Caller> caller_of(int connection);

// Only the first of these; nullopt: it is no connection.
std::optional<uid_t> user_of(int connection);

// From Linux 6.16 on: the sender of a descriptor to `socket` gets EPERM; connections to a listening socket inherit it.
// Closing another process's descriptor can take as long as that process likes (a TCP socket with SO_LINGER, say), and
// the receiver of one closes it. false: the kernel cannot.
bool refuse_descriptors(int socket);
bool kernel_refuses_descriptors();

// For a connection that may be older than refuse_descriptors() of the socket that listened: it brings none from here on.
// true: it has brought some already, which lie unread in it.
bool brought_descriptors(int connection);

// Ends the connection so that what was sent before can still be read there: what the other side has sent meanwhile is
// read and dropped, since otherwise the kernel would answer it with a reset. Descriptors among it hold nobody up.
void hang_up(UniqueFd connection);

// The same for one that is closed later, by its last holder.
void end_connection(int connection);

// Closes one end of it, with whatever lies unread in it.
void close_connection(UniqueFd connection);

}  // namespace millrace
