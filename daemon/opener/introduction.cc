#include "daemon/opener/introduction.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>

#include "daemon/door/peer.h"
#include "proto/base/printable.h"

namespace millrace {
namespace {

struct Suspect {
  Forgery kind{};
  std::string why;
};

Error forged(const Suspect& suspect, Suspicion& suspicion) {
  Error error{Code::kInvalid, "introduction: " + suspect.why + ": not a client's connection to the hand-off socket"};
  suspicion.say(suspect.kind, error.message);
  return error;
}

std::optional<int> option_of(int socket, int option) {
  int value = 0;
  socklen_t length = sizeof value;
  if (::getsockopt(socket, SOL_SOCKET, option, &value, &length) != 0) return std::nullopt;
  return value;
}

using AskName = int (*)(int, sockaddr*, socklen_t*);

// "" : none. A name in the abstract namespace begins with a zero byte. nullopt: the kernel gives none.
std::optional<std::string> name_of(int socket, AskName ask) {
  sockaddr_un address{};
  socklen_t length = sizeof address;
  if (ask(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return std::nullopt;
  constexpr std::size_t kPath = offsetof(sockaddr_un, sun_path);
  if (length <= kPath) return std::string();
  std::string name(address.sun_path, std::min<std::size_t>(length - kPath, sizeof address.sun_path));
  if (name.front() != '\0') name.resize(std::strlen(name.c_str()));  // its zero at the end belongs to it
  return name;
}

bool has_ended(int socket) {
  pollfd look{.fd = socket, .events = POLLRDHUP, .revents = 0};
  return ::poll(&look, 1, 0) != 0;  // POLLHUP and POLLERR without being asked for
}

// nullopt: a client's.
std::optional<Suspect> suspect(int socket, const std::string& handoff) {
  if (option_of(socket, SO_DOMAIN) != AF_UNIX) return Suspect{Forgery::kNoUnixSocket, "no Unix socket"};
  if (option_of(socket, SO_TYPE) != SOCK_SEQPACKET) return Suspect{Forgery::kOtherType, "not of SOCK_SEQPACKET"};
  const std::optional<std::string> own = name_of(socket, ::getsockname), other = name_of(socket, ::getpeername);
  if (!other) return Suspect{Forgery::kNotConnected, "not connected"};
  if (!other->empty())
    return Suspect{Forgery::kNamed, "its other end has the name " + printable(*other) + ", so nobody accepted it"};
  if (own != handoff)
    return Suspect{Forgery::kElsewhere, "it came in at \"" + printable(own.value_or("")) +
                                            "\", where the settings' hand-off socket is " + printable(handoff)};
  return std::nullopt;
}

Result<void> check_client(const Caller& client, const IntroductionRules& rules) {
  if (rules.unmapped.user == client.uid)
    return Error{Code::kDenied,
                 "the opener runs in a user namespace (a container) that does not map your user: to it you are " +
                     std::to_string(client.uid) +
                     ", as all are that it does not map; map your user there, or send "
                     "the images' bytes"};
  const bool unmapped_group = rules.unmapped.group && (client.gid == *rules.unmapped.group ||
                                                       std::find(client.groups.begin(), client.groups.end(),
                                                                 *rules.unmapped.group) != client.groups.end());
  if (unmapped_group)
    return Error{Code::kDenied,
                 "the opener runs in a user namespace (a container) that does not map every group of yours, so it "
                 "cannot ask the kernel what you may read; map your groups there, or leave them"};
  if (client.uid == 0 && rules.root == RootCallers::kRefused)
    return Error{Code::kDenied, "the opener opens nothing for root: set files.as_root = true to let it"};
  return {};
}

}  // namespace

Result<Caller> client_of(int connection, const IntroductionRules& rules, Suspicion& suspicion) {
  if (const std::optional<Suspect> found = suspect(connection, rules.handoff)) return forged(*found, suspicion);
  if (has_ended(connection)) return Error{Code::kDenied, "introduction: the client has gone"};
  MILLRACE_TRY(Caller client, caller_of(connection));
  MILLRACE_TRY_VOID(check_client(client, rules));
  return client;
}

}  // namespace millrace
