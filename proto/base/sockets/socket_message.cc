#include "proto/base/sockets/socket_message.h"

#include <sys/socket.h>

#include <array>
#include <cstring>

#include "proto/base/result.h"

namespace millrace {
namespace {

struct Control {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> bytes{};
};

std::vector<UniqueFd> take_descriptors(msghdr& message) {
  std::vector<UniqueFd> taken;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      taken.emplace_back(fd);
    }
  }
  return taken;
}

}  // namespace

ssize_t send_message(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors, int flags) {
  MILLRACE_CHECK(descriptors.size() <= kMostDescriptors);
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  Control control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  return ::sendmsg(socket, &message, flags | MSG_NOSIGNAL);
}

ReceivedMessage receive_message(int socket, std::span<std::byte> bytes, std::size_t most_descriptors, int flags) {
  MILLRACE_CHECK(most_descriptors <= kMostDescriptors);
  iovec part{bytes.data(), bytes.size()};
  Control control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = CMSG_SPACE(most_descriptors * sizeof(int));
  ReceivedMessage received;
  received.bytes = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  if (received.bytes < 0) return received;
  received.descriptors = take_descriptors(message);
  received.dropped = (message.msg_flags & MSG_CTRUNC) != 0;
  return received;
}

}  // namespace millrace
