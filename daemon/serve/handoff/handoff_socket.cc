#include "daemon/serve/handoff/handoff_socket.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>

#include "daemon/door/peer.h"
#include "daemon/door/sleep_breaker.h"
#include "proto/base/sockets/socket_message.h"

namespace millrace {
namespace {

constexpr std::size_t kDescriptorsSent = 2;  // at most: the segment, the reply socket

}  // namespace

Datagram receive_datagram(int connection) {
  std::array<std::byte, sizeof(shm::HandoffRequest) + 1> bytes{};
  Datagram datagram;
  std::optional<ShortSleeps> guard;
  if (!kernel_refuses_descriptors()) guard.emplace();
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

}  // namespace millrace
