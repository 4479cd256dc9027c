#include "client/src/request_writer.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <utility>

namespace millrace {
inline namespace client {
namespace {

std::string framed(const v1::ClientMessage& message) {
  const auto length = static_cast<std::uint32_t>(message.ByteSizeLong());
  std::string frame(sizeof length + length, '\0');
  for (std::size_t i = 0; i < sizeof length; ++i) frame[i] = static_cast<char>(length >> (8 * i));
  message.SerializeWithCachedSizesToArray(reinterpret_cast<std::uint8_t*>(frame.data() + sizeof length));
  return frame;
}

}  // namespace

void RequestWriter::send(const v1::ClientMessage& message, Deadline patience) {
  frames_.push_back(framed(message));
  static_cast<void>(flush(patience));
}

bool RequestWriter::flush(Deadline patience) {
  while (!write_some()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(time_left(patience));
    pollfd watched{socket_.get(), POLLOUT, 0};
    if (left.count() <= 0 || ::poll(&watched, 1, static_cast<int>(left.count())) == 0) return false;
  }
  return true;
}

// false: the socket is full.
bool RequestWriter::write_some() {
  while (!frames_.empty()) {
    const std::string& frame = frames_.front();
    const ssize_t sent =
        ::send(socket_.get(), frame.data() + written_, frame.size() - written_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (sent < 0) {
      frames_.clear();
      written_ = 0;
      return true;
    }
    written_ += static_cast<std::size_t>(sent);
    if (written_ < frame.size()) continue;
    frames_.pop_front();
    written_ = 0;
  }
  return true;
}

}  // namespace client
}  // namespace millrace
