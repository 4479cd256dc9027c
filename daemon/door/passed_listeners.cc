#include "daemon/door/passed_listeners.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "proto/base/printable.h"

namespace millrace {
namespace {

int kernel_type(SocketType type) {
  return type == SocketType::kStream ? SOCK_STREAM : SOCK_SEQPACKET;
}

const char* directive(int type) {
  return type == SOCK_STREAM ? "ListenStream" : "ListenSequentialPacket";
}

int option_of(int socket, int option) {
  int value = -1;
  socklen_t length = sizeof value;
  return ::getsockopt(socket, SOL_SOCKET, option, &value, &length) == 0 ? value : -1;
}

// Of a Unix socket that is bound to a file; empty: of any other.
std::string path_of(int socket) {
  sockaddr_un address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0 || address.sun_family != AF_UNIX)
    return {};
  if (length <= offsetof(sockaddr_un, sun_path)) return {};
  return std::string(address.sun_path, ::strnlen(address.sun_path, length - offsetof(sockaddr_un, sun_path)));
}

}  // namespace

Result<PassedListeners> PassedListeners::of_this_process() {
  PassedListeners passed;
  char** names = nullptr;
  const int count = sd_listen_fds_with_names(1, &names);
  if (count < 0) return errno_error("looking at what the service manager passed ($LISTEN_FDS)", -count);
  Result<void> outcome;
  for (int i = 0; i < count; ++i) {
    UniqueFd socket(SD_LISTEN_FDS_START + i);
    Result<Listener> listener = look_at(std::move(socket), names != nullptr ? names[i] : "");
    if (listener)
      passed.listeners_.push_back(*std::move(listener));
    else if (outcome)
      outcome = listener.error();
    if (names != nullptr) ::free(names[i]);
  }
  ::free(names);
  if (!outcome) return outcome.error();
  passed.none_ = passed.listeners_.empty();
  return passed;
}

Result<PassedListeners::Listener> PassedListeners::look_at(UniqueFd socket, const std::string& name) {
  const int type = option_of(socket.get(), SO_TYPE);
  std::string path = path_of(socket.get());
  const bool fits =
      !path.empty() && option_of(socket.get(), SO_ACCEPTCONN) == 1 && (type == SOCK_STREAM || type == SOCK_SEQPACKET);
  if (!fits)
    return Error{Code::kPrecondition, "the service manager passed descriptor " + std::to_string(socket.get()) +
                                          (name.empty() ? "" : " (" + printable(name) + ")") +
                                          ", which is not a Unix socket that listens at a path: the socket unit needs "
                                          "ListenStream= and ListenSequentialPacket= with paths, and Accept=no"};
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0)
    return errno_error("taking over the socket " + path, errno);
  return Listener{std::move(socket), std::move(path), type};
}

Result<UniqueFd> PassedListeners::take(const std::string& path, SocketType type) {
  const auto found =
      std::find_if(listeners_.begin(), listeners_.end(), [&](const Listener& one) { return one.path == path; });
  if (found == listeners_.end())
    return Error{Code::kPrecondition, "the service manager passed no listening socket at " + printable(path) +
                                          ", where daemon.socket wants one, but " + all() +
                                          ": make the socket unit (systemctl edit --full millraced.socket) and the "
                                          "settings name the same path"};
  if (found->type != kernel_type(type))
    return Error{Code::kPrecondition, "the service manager passed " + printable(path) +
                                          " as a socket of another type: the socket unit needs " +
                                          directive(kernel_type(type)) + "=" + printable(path)};
  UniqueFd socket = std::move(found->socket);
  listeners_.erase(found);
  return socket;
}

Result<void> PassedListeners::check_all_taken() const {
  if (listeners_.empty()) return {};
  return Error{Code::kPrecondition,
               "the service manager passed sockets that nobody serves, where clients would wait for ever: " + all() +
                   "; take them out of the socket unit"};
}

std::string PassedListeners::all() const {
  if (listeners_.empty()) return "no other";
  std::string text;
  for (const Listener& one : listeners_)
    text += (text.empty() ? "" : ", ") + (directive(one.type) + ("=" + printable(one.path)));
  return text;
}

}  // namespace millrace
