#include "client/src/wire/address.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "client/src/wire/unix_socket.h"
#include "millrace/client.h"
#include "proto/base/sockets/handoff_path.h"
#include "proto/base/unique_fd.h"

namespace millrace {
inline namespace client {

Result<Address> resolve_address(std::string_view text) {
  if (text.empty()) {
    const char* set = std::getenv("MILLRACE_SOCKET");
    text = set != nullptr && *set != '\0' ? set : kDefaultSocket;
  }
  constexpr std::string_view kScheme = "unix:";
  if (text.substr(0, kScheme.size()) == kScheme) {
    text.remove_prefix(kScheme.size());
    if (text.substr(0, 2) == "//") text.remove_prefix(2);  // unix:///path
  } else if (text.find('/') == std::string_view::npos && text.find(':') != std::string_view::npos) {
    return Error{Code::kUnsupported,
                 "address " + std::string(text) +
                     ": this version reaches the daemon on its own host only; give a socket's path, or unix:PATH"};
  }
  if (text.empty() || text.size() > kLongestSocketPath)
    return Error{Code::kInvalid, "address " + std::string(text) + ": a socket's path has 1 to " +
                                     std::to_string(kLongestSocketPath) + " bytes"};
  return Address{std::string(text)};
}

Result<void> probe(const Address& address, Deadline deadline) {
  auto connected = connect_unix(address.path, SOCK_STREAM, deadline);
  if (connected) return {};
  return cannot_reach(address, connected.error().code, connected.error().message);
}

Error cannot_reach(const Address& address, Code code, std::string_view why) {
  std::string text = "cannot reach the daemon at " + address.target() + ": ";
  struct stat status {};
  if (::stat(address.path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode))
    return Error{Code::kUnavailable, text + (S_ISDIR(status.st_mode) ? "that is a folder" : "that is no socket") +
                                         "; name the daemon's socket with --socket or MILLRACE_SOCKET, such as " +
                                         kDefaultSocket};
  text += why;
  if (code == Code::kDenied)
    return Error{code,
                 text + "; join the group that owns the socket (sudo usermod -aG millrace $USER, then log in again)"};
  return Error{Code::kUnavailable,
               text +
                   "; start it with `systemctl start millraced`, name another with --socket or MILLRACE_SOCKET, "
                   "or have one of your own: --private with millrace's commands, millrace.serve() in Python"};
}

Error no_answer(const Address& address, std::string_view why) {
  return turned_down(address,
                     std::string(why) +
                         "; it may be starting again: then a new session goes on from the epoch's position. If that "
                         "lasts, millraced does not start or hangs: `journalctl -u millraced` says why");
}

Error turned_down(const Address& address, std::string_view why) {
  return Error{Code::kUnavailable, "the daemon at " + address.target() + ": " + std::string(why)};
}

}  // namespace client
}  // namespace millrace
