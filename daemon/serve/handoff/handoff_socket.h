// One connection's raw side: datagrams in, datagrams with at most two descriptors out. System calls only, none of them
// waits. Functions, thread-safe.
#pragma once

#include <span>
#include <vector>

#include "daemon/serve/handoff/handoff_message.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"
#include "proto/shm/handoff_wire.h"

namespace millrace {

enum class Received : std::uint8_t { kNothing, kEnd, kMessage };  // nothing: not now; end: the other side is gone

struct Datagram {
  Received what = Received::kNothing;
  std::vector<std::byte> bytes;   // at most one more than a request has, which is enough to see that it is too long
  bool with_descriptors = false;  // some came along and are gone again
};
Datagram receive_datagram(int connection);

// kUnavailable: the other side is gone, or does not read. `descriptors`: at most two; they stay the caller's.
Result<void> send_reply(int connection, const shm::HandoffReply& reply, std::span<const int> descriptors = {});

}  // namespace millrace
