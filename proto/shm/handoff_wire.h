// The hand-off socket's messages: what gRPC cannot carry, namely who the caller is (SO_PEERCRED) and descriptors
// (SCM_RIGHTS). A Unix SOCK_SEQPACKET socket beside the gRPC one (proto/base/sockets/handoff_path.h). One
// connection a session; the kernel closes it when the client dies, however it dies, and that reclaims the session.
//
//   client                             daemon
//   connect ─────────────────────────▶ reads SO_PEERCRED
//   Hello{flags} ────────────────────▶
//           ◀───────────────────────── Reply{kWelcome, ticket}        or Reply{kRefused, why}
//   gRPC Sessions.Open(ticket) ──────▶ allocates the segment
//           ◀───────────────────────── Reply{kSegment} + read-only descriptor of the segment + reply socket
//           ◀───────────────────────── Reply{kMemory} + descriptor of a device's memory, if the session asked for one
//   RingRequest{ring_bytes} ─────────▶ (at any time after kSegment, once) makes a memfd of that size, sealed
//           ◀───────────────────────── Reply{kRing} + its descriptor, writable   or Reply{kRefused, why}
//   Goodbye ─────────────────────────▶ (at any time, unanswered) notes that the client means to go: it did not die
//   LetGo ───────────────────────────▶ (at the end, unanswered) nothing of its process uses the session's device memory any
//                                      more, nor ever will: a later session of the process may have it
//   close ───────────────────────────▶ reclaims everything that the session holds
//
// A GPU's memory comes as what cuMemExportToShareableHandle() makes; all of it is to be imported and mapped, as one
// allocation. It is the session's alone, zeroes at first, and lives until its last holder lets go, also when the daemon
// has ended. A holder of the descriptor can write all of it.
//
// Descriptors go from the daemon to the client only. A message that carries one to the daemon ends the connection; from
// Linux 6.16 on the sender gets EPERM.
//
// The reply socket is one end of a SOCK_STREAM pair. Hello's flag kWantsReplySocket says that the client reads it; a client
// without is refused, for nothing else brings it what it asks for:
//
//   replies  := (length u32 | ServerMessage of `length` bytes, serialised){*}
//   requests := (length u32 | ClientMessage of `length` bytes, serialised){*}
//
// Requests are all ClientMessages but Attach, which goes by the gRPC stream. They are taken in their order from when the
// session is attached. What is no message, or longer than Limits.message_bytes, ends the stream with the reason. A client
// that shuts its end for writing is answered all the same.
//
// A reply's length of 0 is an early wake-up and no message: the last sample of a batch has ended. It wakes the client while the
// daemon is still at work; the message follows soon, or later where the error policy repairs the slot or an epoch's order holds the
// batch back. Its end of file means that the stream is ending; the stream says why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace millrace::shm {

inline constexpr std::uint32_t kHandoffMagic = 0x4D524831;  // "1HRM"
inline constexpr std::uint32_t kHandoffVersion = 2;
inline constexpr std::size_t kTicketBytes = 16;

enum class RequestKind : std::uint32_t { kHello = 1, kRingRequest = 2, kGoodbye = 3, kLetGo = 4 };
enum HelloFlags : std::uint32_t { kWantsReplySocket = 1 };

struct HandoffRequest {
  std::uint32_t magic;       // kHandoffMagic
  std::uint32_t version;     // kHandoffVersion
  std::uint32_t kind;        // RequestKind
  std::uint32_t flags;       // kHello: HelloFlags; else 0
  std::uint64_t ring_bytes;  // kRingRequest: the ring's size, at least 1; else 0
};
static_assert(sizeof(HandoffRequest) == 24 && std::is_trivial_v<HandoffRequest>);

enum class ReplyKind : std::uint32_t { kWelcome = 1, kSegment = 2, kRing = 3, kRefused = 4, kMemory = 5 };

struct HandoffReply {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t kind;                 // ReplyKind
  std::uint32_t code;                 // kRefused: millrace::Code
  std::uint8_t ticket[kTicketBytes];  // kWelcome; kMemory: the GPU's UUID
  std::uint64_t segment_bytes;        // kSegment, kMemory: its size; kRing: the ring's, as asked for
  char message[200];                  // kRefused: zero-terminated
};
static_assert(sizeof(HandoffReply) == 240 && std::is_trivial_v<HandoffReply>);

}  // namespace millrace::shm
