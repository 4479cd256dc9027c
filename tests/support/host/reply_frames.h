// The reply socket's frames (proto/shm/handoff_wire.h), written and read byte by byte, apart from daemon and client. Both
// ways they are the same.
#pragma once

#include <sys/socket.h>
#include <sys/time.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "millrace/v1/session.pb.h"

namespace millrace {

inline std::string frame_length(std::uint32_t value) {
  std::string bytes(4, 0);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  return bytes;
}

template <class Message>  // v1::ServerMessage, or the other way v1::ClientMessage
std::string framed(const Message& message) {
  const std::string bytes = message.SerializeAsString();
  return frame_length(static_cast<std::uint32_t>(bytes.size())) + bytes;
}

// A request from the client's end, all of it, however long the daemon leaves it unread. false: the socket has ended.
inline bool send_request(int socket, const v1::ClientMessage& request) {
  const std::string bytes = framed(request);
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t more = ::send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (more <= 0) return false;
    sent += static_cast<std::size_t>(more);
  }
  return true;
}

// The next message that comes, early wake-ups left out; nullopt: the socket's end. Throws for what is no message, and
// when no more comes where the socket has a time limit.
template <class Message>
std::optional<Message> read_frame(int socket) {
  std::uint32_t length = 0;
  while (length == 0) {
    const ssize_t got = ::recv(socket, &length, sizeof length, MSG_WAITALL);
    if (got == 0) return std::nullopt;
    if (got != sizeof length) throw std::runtime_error("the reply socket brings no frame");
  }
  std::string bytes(length, 0);
  Message message;
  if (::recv(socket, bytes.data(), length, MSG_WAITALL) != static_cast<ssize_t>(length) ||
      !message.ParseFromString(bytes))
    throw std::runtime_error("the reply socket brings no message");
  return message;
}

// At the client's end, for at most 20 s.
inline std::optional<v1::ServerMessage> read_reply(int socket) {
  const timeval patience{20, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return read_frame<v1::ServerMessage>(socket);
}

}  // namespace millrace
