#include "client/src/wire/unix_socket.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace millrace {
inline namespace client {

void set_timeouts(int socket, Deadline deadline) {
  // A zero timeval would mean for ever.
  const auto left = std::max(std::chrono::microseconds{1},
                             std::chrono::duration_cast<std::chrono::microseconds>(time_left(deadline)));
  timeval time{};
  time.tv_sec = static_cast<time_t>(left.count() / 1'000'000);
  time.tv_usec = static_cast<suseconds_t>(left.count() % 1'000'000);
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
}

Result<UniqueFd> connect_unix(const std::string& path, int type, Deadline deadline) {
  UniqueFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  if (!socket) return errno_error("making a socket", errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof address.sun_path - 1));
  int error = 0;
  do {
    set_timeouts(socket.get(), deadline);
    error = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
  } while (error == EINTR);
  if (error == 0) return socket;
  Error failed = errno_error({}, error);
  failed.message = error == EAGAIN ? "no answer in time" : std::generic_category().message(error);
  return failed;
}

}  // namespace client
}  // namespace millrace
