// What a client may say on the hand-off socket, checked (proto/shm/handoff_wire.h has the bytes). Pure functions and
// values, thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <variant>

#include "daemon/memory/tensor_memory.h"
#include "proto/base/bytes.h"
#include "proto/base/error.h"
#include "proto/base/result.h"
#include "proto/shm/handoff_wire.h"

namespace millrace {

// Proves on the gRPC socket who one is on the hand-off socket: 128 random bits, good as long as the connection.
using Ticket = std::array<std::uint8_t, shm::kTicketBytes>;

struct HandoffHello {};
struct HandoffRing {
  Bytes size_untrusted;  // as wanted; whether it may be so, the input ring finds out
};
struct HandoffGoodbye {};
struct HandoffLetGo {};
using HandoffMessage = std::variant<HandoffHello, HandoffRing, HandoffGoodbye, HandoffLetGo>;

// The bytes of one datagram as it came. kInvalid: length, kind, a field that has no meaning there. kPrecondition:
// another version, a client that reads no reply socket, or not Millrace.
Result<HandoffMessage> parse_handoff(ByteView bytes_untrusted);

// The four answers. `error`'s message is cut where the field ends, between characters.
shm::HandoffReply welcome_reply(const Ticket& ticket);
shm::HandoffReply segment_reply(Bytes segment);
shm::HandoffReply memory_reply(Bytes memory, const DeviceUuid& device);
shm::HandoffReply ring_reply(Bytes ring);
shm::HandoffReply refused_reply(const Error& error);

}  // namespace millrace
