#include "daemon/serve/handoff_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "daemon/serve/socket_path.h"
#include "proto/base/socket_message.h"

namespace millrace {
namespace {

constexpr int kBacklog = 128;
constexpr mode_t kMode = 0660;
constexpr std::size_t kDescriptorsSent = 2;  // at most: the segment, the reply socket

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

Result<UniqueFd> listen_for_handoff(const std::string& path) {
  MILLRACE_TRY_VOID(claim_socket_path(path));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Error{Code::kInvalid, path + ": too long for a socket's path"};
  std::memcpy(address.sun_path, path.data(), path.size());

  UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return errno_error("making the hand-off socket", errno);
  // Before bind(), so that the file never has more rights than these; after it, because the umask may have left fewer.
  if (::fchmod(listener.get(), kMode) != 0) return errno_error("setting the mode of the hand-off socket", errno);
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return errno_error("binding the hand-off socket " + path + " (daemon.socket says where)", errno);
  if (::chmod(path.c_str(), kMode) != 0) return errno_error("setting the mode of " + path, errno);
  if (::listen(listener.get(), kBacklog) != 0) return errno_error("listening on " + path, errno);
  return listener;
}

Result<Caller> caller_of(int connection) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
    return errno_error("asking the kernel who a client is", errno);
  MILLRACE_TRY(std::vector<gid_t> groups, groups_of(connection));
  return Caller{.uid = credentials.uid, .gid = credentials.gid, .groups = std::move(groups), .pid = credentials.pid};
}

Datagram receive_datagram(int connection) {
  std::array<std::byte, sizeof(shm::HandoffRequest) + 1> bytes{};
  Datagram datagram;
  const ReceivedMessage received = receive_message(connection, bytes, 0, MSG_DONTWAIT);
  if (received.bytes < 0) {
    const bool later = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    datagram.what = later ? Received::kNothing : Received::kEnd;
    return datagram;
  }
  datagram.with_descriptors = received.dropped || !received.descriptors.empty();
  datagram.what = received.bytes == 0 ? Received::kEnd : Received::kMessage;  // an empty datagram says goodbye as well
  datagram.bytes.assign(bytes.begin(), bytes.begin() + received.bytes);
  return datagram;
}

Result<void> send_reply(int connection, const shm::HandoffReply& reply, std::span<const int> descriptors) {
  MILLRACE_CHECK(descriptors.size() <= kDescriptorsSent);
  ssize_t sent = -1;
  do {
    sent = send_message(connection, std::as_bytes(std::span(&reply, 1)), descriptors, MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent == static_cast<ssize_t>(sizeof reply)) return {};
  return Error{Code::kUnavailable, errno_error("hand-off: sending to the client", errno).message};
}

void hang_up(int connection) {
  ::shutdown(connection, SHUT_RDWR);  // nothing more can arrive
  while (receive_datagram(connection).what == Received::kMessage) {
  }
}

}  // namespace millrace
