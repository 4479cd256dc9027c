// Where a daemon listens: gRPC on one Unix socket, the hand-off (proto/shm/handoff_wire.h) on another one beside it,
// whose path is the longer one and so bounds both. Constants and a pure function.
#pragma once

#include <sys/un.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

inline constexpr std::string_view kHandoffSuffix = ".handoff";
inline constexpr std::size_t kLongestUnixPath = sizeof(sockaddr_un::sun_path) - 1;  // the kernel's; a zero follows
inline constexpr std::size_t kLongestSocketPath = kLongestUnixPath - kHandoffSuffix.size();

// `socket`: the path of the gRPC socket.
inline std::string handoff_path(std::string_view socket) {
  return std::string(socket).append(kHandoffSuffix);
}

}  // namespace millrace
