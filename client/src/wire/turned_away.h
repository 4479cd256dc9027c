// Finds out why a running daemon refuses a connection: gRPC's own error does not contain the daemon's words.
#pragma once

#include <optional>
#include <string>

#include "client/src/wire/address.h"

namespace millrace {
inline namespace client {

// Connects once more and reads what the daemon says to a connection that it turns away (an HTTP/2 GOAWAY frame, RFC
// 9113, 6.8); nullopt: it would take this one, or is not there. The daemon says it
// after 50 ms; waits a second at most. Thread-safe.
std::optional<std::string> turned_away(const Address& address);

}  // namespace client
}  // namespace millrace
