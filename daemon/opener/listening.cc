#include "daemon/opener/listening.h"

#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "daemon/door/socket_path.h"

namespace millrace {

Result<UniqueFd> passed_socket() {
  const int count = ::sd_listen_fds(1);
  if (count != 1)
    return Error{Code::kPrecondition,
                 "the service manager passed " + std::to_string(count < 0 ? 0 : count) +
                     " sockets, not one: start it by millrace-opener.socket, or by hand with --socket"};
  UniqueFd socket(SD_LISTEN_FDS_START);
  if (::sd_is_socket(socket.get(), AF_UNIX, SOCK_SEQPACKET, 1) <= 0)
    return Error{Code::kPrecondition, "the socket that was passed is no ListenSequentialPacket= of a path"};
  return socket;
}

Result<UniqueFd> listen_at(const std::string& path) {
  MILLRACE_TRY_VOID(claim_socket_path(path));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());  // claim_socket_path() has seen that it fits
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return errno_error("making the socket " + path, errno);
  const bool listens = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                       ::chmod(path.c_str(), 0666) == 0 && ::listen(socket.get(), 1024) == 0;
  if (!listens) return errno_error("cannot listen on " + path, errno);
  return socket;
}

std::optional<uid_t> user_of(const std::string& name) {
  uid_t number = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (failed == std::errc{} && end == name.data() + name.size()) return number;
  const passwd* const user = ::getpwnam(name.c_str());
  return user == nullptr ? std::nullopt : std::optional(user->pw_uid);
}

}  // namespace millrace
