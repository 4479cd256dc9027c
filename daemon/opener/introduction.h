// Who a client is, by the client's own hand-off connection and by nothing else. The daemon passes a duplicate of it; it
// may be broken, so what it passed must be a connection
//
// - of a Unix SOCK_SEQPACKET socket that somebody accepted: its other end has no name. The other end of a connection
//   that the daemon made itself, to a socket of somebody's, always has one, that socket's; SO_PEERCRED would then be
//   the process that listens there, which asked for nothing;
// - that came in at the hand-off socket: it bears that socket's name. So a client of another socket is not taken for
//   one of Millrace;
// - whose other end is still open.
//
// The daemon passes nothing but clients' connections: somebody should look at one that does. System calls that wait for
// nothing. Thread-safe.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/fetch/open/unmapped_ids.h"
#include "daemon/model/caller.h"
#include "daemon/observe/bounded_log.h"
#include "proto/base/mutex.h"
#include "proto/base/result.h"

namespace millrace {

enum class RootCallers : bool { kRefused, kServed };

struct IntroductionRules {
  std::string handoff;  // the socket's path, as it was bound
  RootCallers root = RootCallers::kRefused;
  UnmappedIds unmapped;
};

// What a connection is that no client of Millrace has. kNamed a client can bring about, too, by binding a name before it
// connects.
enum class Forgery : std::uint8_t { kNoUnixSocket, kOtherType, kNotConnected, kNamed, kElsewhere };
inline constexpr std::size_t kForgeries = 5;

// The log's lines about those: each kind has its own, so that none hides another. Thread-safe.
class Suspicion {
 public:
  void say(Forgery kind, std::string_view what) MILLRACE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    lines_[static_cast<std::size_t>(kind)].warn(what);
  }

 private:
  Mutex mutex_;
  std::array<SeldomLine, kForgeries> lines_ MILLRACE_GUARDED_BY(mutex_);
};

// kInvalid: no such connection, and what is wrong with it, which `suspicion` says, too; kDenied: a client for whom nothing
// is opened: one that has gone, root, one that this user namespace does not map, or in a group that it does not map.
Result<Caller> client_of(int connection, const IntroductionRules& rules, Suspicion& suspicion);

}  // namespace millrace
