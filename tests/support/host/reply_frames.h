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

// The next message from the client's end, early wake-ups left out; nullopt: its end. Throws when nothing comes in 20 s, or
// what is no message.
inline std::optional<v1::ServerMessage> read_reply(int socket) {
  const timeval patience{20, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  std::uint32_t length = 0;
  while (length == 0) {
    const ssize_t got = ::recv(socket, &length, sizeof length, MSG_WAITALL);
    if (got == 0) return std::nullopt;
    if (got != sizeof length) throw std::runtime_error("the reply socket brings no frame");
  }
  std::string bytes(length, 0);
  v1::ServerMessage message;
  if (::recv(socket, bytes.data(), length, MSG_WAITALL) != static_cast<ssize_t>(length) ||
      !message.ParseFromString(bytes))
    throw std::runtime_error("the reply socket brings no message");
  return message;
}

}  // namespace millrace
