#include "client/src/wire/request_writer.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

namespace millrace {
inline namespace client {
namespace {

constexpr std::size_t kPieces = 512;  // in one system call (IOV_MAX is 1024)

}  // namespace

void RequestWriter::send(const MessageParts& message, Deadline patience) {
  const bool waits = !flush(patience);
  const std::size_t written = waits ? 0 : write_at_once(message, patience);
  if (written < message.size()) frames_.push_back(message.copy(written));
}

// How many bytes have left; all, where nobody reads any more.
std::size_t RequestWriter::write_at_once(const MessageParts& message, Deadline patience) {
  std::size_t written = 0;
  while (written < message.size()) {
    std::vector<iovec> pieces = message.pieces(written, kPieces);
    msghdr parts{};
    parts.msg_iov = pieces.data();
    parts.msg_iovlen = pieces.size();
    const ssize_t sent = ::sendmsg(socket_.get(), &parts, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
      written += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for_room(patience)) return written;
    } else if (errno != EINTR) {
      return message.size();
    }
  }
  return written;
}

bool RequestWriter::flush(Deadline patience) {
  while (!write_some()) {
    if (!wait_for_room(patience)) return false;
  }
  return true;
}

// false: none until then.
bool RequestWriter::wait_for_room(Deadline patience) const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(time_left(patience));
  pollfd watched{socket_.get(), POLLOUT, 0};
  return left.count() > 0 && ::poll(&watched, 1, static_cast<int>(left.count())) != 0;
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
