// What the daemon and its opener (daemon/opener) say to each other. A Unix SOCK_SEQPACKET socket of the opener's; the
// daemon alone may connect. Each connection carries one request at a time; the opener answers each with one reply.
//
//   daemon                                    opener
//   connect ────────────────────────────────▶ a thread of its own
//   Introduce + a duplicate of the client's ─▶ asks the kernel who is at the connection's other end, and remembers it
//     own hand-off connection                  until that connection ends, or this one does
//           ◀───────────────────────────────── Reply{kIntroduced, caller}        or Reply{kRefused} + Answer
//   Open{caller, what, names} ──────────────▶ on any connection: opens each name as that caller
//           ◀───────────────────────────────── Reply{kOpened} + an Answer a name, and the descriptors of those opened
//                                              or Reply{kUnknownCaller}: introduce the client (again)
//                                              or Reply{kRefused} + Answer: no sense in it, or of another version
//   ReadSettings ───────────────────────────▶ reads files.roots in the settings file again, which it alone knows
//           ◀───────────────────────────────── Reply{kSettingsRead}             or Reply{kRefused} + Answer: its roots stay
//
//   request := OpenerRequest | (length u32){names} | bytes of the names, one behind the other
//   reply   := OpenerReply | OpenerAnswer{answers} | bytes of the answers' texts, one behind the other
//
// Nothing comes before, between or after these. Descriptors come in the order of the names; one that the daemon has no
// room for is missing at the end. Host byte order: both processes are on one host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace millrace::shm {

inline constexpr std::uint32_t kOpenerMagic = 0x4D524F31;  // "1ORM"
inline constexpr std::uint32_t kOpenerVersion = 1;
inline constexpr std::uint32_t kOpenerMostNames = 16;
inline constexpr std::uint32_t kOpenerLongestName = 4095;  // the kernel's PATH_MAX, without its zero
inline constexpr std::uint32_t kOpenerLongestText = 512;

enum class OpenerRequestKind : std::uint32_t { kIntroduce = 1, kOpen = 2, kReadSettings = 3 };

enum class OpenerWhat : std::uint32_t {
  kFile = 1,    // a regular file, for reading
  kFolder = 2,  // a folder that the caller may list and search, for reading its entries
  kType = 3,    // what a path leads to, links followed: no descriptor, the answer's `type`
};

struct OpenerRequest {
  std::uint32_t magic;    // kOpenerMagic
  std::uint32_t version;  // kOpenerVersion
  std::uint32_t kind;     // OpenerRequestKind
  std::uint32_t what;     // kOpen: OpenerWhat; else 0
  std::uint64_t number;   // the reply bears the same
  std::uint64_t caller;   // kOpen: from kIntroduced; else 0
  std::uint32_t names;    // kOpen: 1 to kOpenerMostNames; else 0
  std::uint32_t zero;
};
static_assert(sizeof(OpenerRequest) == 40 && offsetof(OpenerRequest, caller) == 24);
static_assert(std::is_trivial_v<OpenerRequest>);

enum class OpenerReplyKind : std::uint32_t {
  kIntroduced = 1,
  kOpened = 2,
  kUnknownCaller = 3,
  kRefused = 4,
  kSettingsRead = 5,
};

struct OpenerReply {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t kind;     // OpenerReplyKind
  std::uint32_t answers;  // kOpened: as many as names; kRefused: 1; else 0
  std::uint64_t number;   // the request's; 0: it could not be read
  std::uint64_t caller;   // kIntroduced: never 0; else 0
};
static_assert(sizeof(OpenerReply) == 32 && std::is_trivial_v<OpenerReply>);

enum OpenerAnswerFlags : std::uint32_t {
  kOpenerDescriptor = 1,   // one came along; never with a code
  kOpenerRootMissing = 2,  // with code NOT_FOUND: not the file, its root is not there
};

struct OpenerAnswer {
  std::uint32_t code;   // 0: well; else millrace::Code, and a text
  std::uint32_t flags;  // OpenerAnswerFlags
  std::uint32_t type;   // kType, and well: the S_IFMT bits of its mode; else 0
  std::uint32_t text;   // bytes, at most kOpenerLongestText
};
static_assert(sizeof(OpenerAnswer) == 16 && std::is_trivial_v<OpenerAnswer>);

inline constexpr std::size_t kOpenerLargestRequest =
    sizeof(OpenerRequest) + kOpenerMostNames * (sizeof(std::uint32_t) + kOpenerLongestName);
inline constexpr std::size_t kOpenerLargestReply =
    sizeof(OpenerReply) + kOpenerMostNames * (sizeof(OpenerAnswer) + kOpenerLongestText);

}  // namespace millrace::shm
