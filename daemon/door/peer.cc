#include "daemon/door/peer.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/door/sleep_breaker.h"

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

enum class Unread : bool { kBytes, kDescriptors };

// What lies unread in a connection, of which each look sees a further part. One with more messages than any client sends
// before it is answered passes for one with descriptors.
Unread look_through(int connection) {
  constexpr int kMostLooks = 1'024;
  std::array<std::byte, 16'384> bytes;
  for (int look = 0; look < kMostLooks; ++look) {
    iovec part{bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const ssize_t got = ::recvmsg(connection, &message, MSG_PEEK | MSG_DONTWAIT);
    if (got < 0) return Unread::kBytes;
    if ((message.msg_flags & MSG_CTRUNC) != 0) return Unread::kDescriptors;  // there is no room for any
    if (got == 0 && ::recv(connection, bytes.data(), 1, MSG_PEEK | MSG_DONTWAIT) == 0) return Unread::kBytes;
  }
  return Unread::kDescriptors;
}

bool ask_credentials(int connection, ucred& credentials) {
  socklen_t length = sizeof credentials;
  return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0;
}

}  // namespace

Result<Caller> caller_of(int connection) {
  ucred credentials{};
  if (!ask_credentials(connection, credentials)) return errno_error("asking the kernel who a client is", errno);
  MILLRACE_TRY(std::vector<gid_t> groups, groups_of(connection));
  return Caller{.uid = credentials.uid, .gid = credentials.gid, .groups = std::move(groups), .pid = credentials.pid};
}

std::optional<uid_t> user_of(int connection) {
  ucred credentials{};
  if (!ask_credentials(connection, credentials)) return std::nullopt;
  return credentials.uid;
}

bool refuse_descriptors(int socket) {
  const int pass = 0;
  return ::setsockopt(socket, SOL_SOCKET, kPassRights, &pass, sizeof pass) == 0;
}

bool brought_descriptors(int connection) {
  int pass = 0;
  socklen_t length = sizeof pass;
  if (::getsockopt(connection, SOL_SOCKET, kPassRights, &pass, &length) != 0 || pass == 0) return false;
  refuse_descriptors(connection);
  const int from_the_start = 0, off = -1;
  ::setsockopt(connection, SOL_SOCKET, SO_PEEK_OFF, &from_the_start, sizeof from_the_start);
  const Unread found = look_through(connection);
  ::setsockopt(connection, SOL_SOCKET, SO_PEEK_OFF, &off, sizeof off);
  return found == Unread::kDescriptors;
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
