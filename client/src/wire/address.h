// Where the daemon listens. Immutable.
#pragma once

#include <string>
#include <string_view>

#include "client/src/wire/deadline.h"
#include "millrace/result.h"

namespace millrace {
inline namespace client {

struct Address {
  std::string path;  // of the gRPC socket

  std::string target() const { return "unix:" + path; }
};

// `text`: a path, or "unix:PATH"; empty: $MILLRACE_SOCKET, else the default. kUnsupported: another scheme. kInvalid:
// too long for a socket.
Result<Address> resolve_address(std::string_view text);

// Whether somebody listens there: connects and hangs up. kUnavailable, kDenied: as cannot_reach().
Result<void> probe(const Address& address, Deadline deadline);

// "cannot reach the daemon at unix:...: WHY; start it with ...". Where no socket is but something else, it says so
// instead, and the code is kUnavailable.
Error cannot_reach(const Address& address, Code code, std::string_view why);

// kUnavailable: somebody listens there, or a service manager does for a daemon that is to come, and answers nothing:
// "the daemon at unix:...: WHY; it may be starting again ...", and who says why not.
Error no_answer(const Address& address, std::string_view why);

// kUnavailable: somebody is there and says WHY himself: "the daemon at unix:...: WHY".
Error turned_down(const Address& address, std::string_view why);

}  // namespace client
}  // namespace millrace
