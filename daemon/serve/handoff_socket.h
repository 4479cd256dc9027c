// One connection's raw side: datagrams in, datagrams with at most two descriptors out, and what the
// kernel says of the process at the other end. System calls only, none of them waits. Functions, thread-safe.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "daemon/model/caller.h"
#include "daemon/serve/handoff_message.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"
#include "proto/shm/handoff_wire.h"

namespace millrace {

// A SOCK_SEQPACKET socket that listens on `path`, mode 0660, after making way for itself (socket_path.h has the
// errors).
Result<UniqueFd> listen_for_handoff(const std::string& path);

// Uid, gid, supplementary groups and pid at the time of connect().
Result<Caller> caller_of(int connection);

enum class Received : std::uint8_t { kNothing, kEnd, kMessage };  // nothing: not now; end: the other side is gone

struct Datagram {
  Received what = Received::kNothing;
  std::vector<std::byte> bytes;   // at most one more than a request has, which is enough to see that it is too long
  bool with_descriptors = false;  // some came along and are gone again
};
Datagram receive_datagram(int connection);

// kUnavailable: the other side is gone, or does not read. `descriptors`: at most two; they stay the caller's.
Result<void> send_reply(int connection, const shm::HandoffReply& reply, std::span<const int> descriptors = {});

// Ends the connection so that what was sent before can still be read there: what the other side has sent meanwhile is
// read and dropped, since otherwise the kernel would answer it with a reset. The descriptor itself stays the caller's
// to close.
void hang_up(int connection);

}  // namespace millrace
