// UNAVAILABLE is what gRPC says when nobody answers. How a client tells it from the daemon's own. Constants.
#pragma once

namespace millrace {

// Trailing metadata of every UNAVAILABLE that the daemon itself answers with, value "1": its message is for people, and
// somebody is there.
inline constexpr const char* kOwnWordsMetadata = "millrace-own-words";

}  // namespace millrace
