#include "daemon/serve/peer.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/serve/sleep_breaker.h"

namespace millrace {
namespace {

// Messages that are read before a connection is closed, so that its other end can read what was sent to it. Where they
// may bring descriptors, each of them may take a millisecond.
constexpr int kMostUnread = 1'000;
constexpr int kMostUnreadWithDescriptors = 2;

constexpr int kPassRights = 83;  // SO_PASSRIGHTS, which Debian 12's headers lack

Result<std::vector<gid_t>> groups_of(int connection) {
  std::vector<gid_t> groups(64);
  while (true) {
    auto length = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    const int outcome = ::getsockopt(connection, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &length);
    if (outcome != 0 && errno != ERANGE) return errno_error("asking the kernel for the groups of a client", errno);
    const std::size_t count = length / sizeof(gid_t);
    const bool fitted = outcome == 0;
    groups.resize(count);
    if (fitted) return groups;
  }
}

}  // namespace

Result<Caller> caller_of(int connection) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
    return errno_error("asking the kernel who a client is", errno);
  MILLRACE_TRY(std::vector<gid_t> groups, groups_of(connection));
  return Caller{.uid = credentials.uid, .gid = credentials.gid, .groups = std::move(groups), .pid = credentials.pid};
}

bool refuse_descriptors(int socket) {
  const int pass = 0;
  return ::setsockopt(socket, SOL_SOCKET, kPassRights, &pass, sizeof pass) == 0;
}

bool kernel_refuses_descriptors() {
  static const bool refuses = [] {
    const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return refuse_descriptors(probe.get());
  }();
  return refuses;
}

void close_connection(UniqueFd connection) {
  std::optional<ShortSleeps> guard;
  if (!kernel_refuses_descriptors()) guard.emplace();
  connection.reset();
}

void hang_up(UniqueFd connection) {
  end_connection(connection.get());
  close_connection(std::move(connection));
}

void end_connection(int connection) {
  std::optional<ShortSleeps> guard;
  int to_read = kMostUnread;
  if (!kernel_refuses_descriptors()) {
    guard.emplace();
    to_read = kMostUnreadWithDescriptors;
  }
  ::shutdown(connection, SHUT_RDWR);  // nothing more can arrive
  std::array<std::byte, 4096> unread{};
  while (to_read-- > 0 && ::recv(connection, unread.data(), unread.size(), MSG_DONTWAIT) > 0) {
  }
}

}  // namespace millrace
