// Who a client is, by the client's own hand-off connection and by nothing else. The daemon passes a duplicate of it; it
// may be broken, so what it passed must be a connection
//
// - of a Unix SOCK_SEQPACKET socket that somebody accepted: its other end has no name. The other end of a connection
//   that the daemon made itself, to a socket of somebody's, always has one, that socket's; SO_PEERCRED would then be
//   whoever listens there, who asked for nothing;
// - that came in at the hand-off socket: it bears that socket's name. So a client of another socket is not taken for
//   one of Millrace;
// - whose other end is still open.
//
// System calls that wait for nothing. Thread-safe: a plain function.
#pragma once

#include <sys/types.h>

#include <string>

#include "daemon/fetch/unmapped_ids.h"
#include "daemon/model/caller.h"
#include "proto/base/result.h"

namespace millrace {

enum class RootCallers : bool { kRefused, kServed };

struct IntroductionRules {
  std::string handoff;  // the socket's path, as it was bound
  RootCallers root = RootCallers::kRefused;
  UnmappedIds unmapped;
};

// kInvalid: no such connection, and what is wrong with it; kDenied: a client for whom nothing is opened: root, one that
// this user namespace does not map, or in a group that it does not map.
Result<Caller> client_of(int connection, const IntroductionRules& rules);

}  // namespace millrace
