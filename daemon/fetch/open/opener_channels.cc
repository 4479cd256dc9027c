#include "daemon/fetch/open/opener_channels.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "proto/base/printable.h"
#include "proto/base/sockets/socket_message.h"

namespace millrace {
namespace {

enum class Late : std::uint8_t { kStill, kCame, kBroken };

// Whether the late reply is there; what it brings is closed.
Late look_for_reply(const OpenerChannels::Channel& channel) {
  std::vector<std::byte> bytes = room_for_reply();
  const ReceivedMessage received = receive_message(channel.socket.get(), bytes, shm::kOpenerMostNames, MSG_DONTWAIT);
  if (received.bytes < 0) return errno == EAGAIN || errno == EINTR ? Late::kStill : Late::kBroken;
  const auto reply = parse_opener_reply(ByteView(bytes).first(static_cast<std::size_t>(received.bytes)));
  return reply && reply->number == channel.awaited ? Late::kCame : Late::kBroken;
}

// Connecting waits while the opener accepts nobody.
bool limit_waiting(int socket, std::chrono::milliseconds patience) {
  const timeval time{.tv_sec = patience.count() / 1'000, .tv_usec = patience.count() % 1'000 * 1'000};
  return ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time) == 0;
}

}  // namespace

bool wait_for_reply(int socket, std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + patience;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return false;
    pollfd look{.fd = socket, .events = POLLIN, .revents = 0};
    if (::poll(&look, 1, static_cast<int>(left.count())) > 0) return true;
  }
}

std::vector<std::byte> room_for_reply() {
  return std::vector<std::byte>(shm::kOpenerLargestReply + 1);
}

// Late replies that have come since are taken in, broken connections dropped.
OpenerChannels::Seen OpenerChannels::look() {
  Seen seen;
  std::erase_if(channels_, [&](const std::unique_ptr<Channel>& channel) {
    if (channel->taken) {
      ++seen.taken;
      return false;
    }
    const Late late = channel->awaited == OpenerNumber::kNone ? Late::kCame : look_for_reply(*channel);
    if (late == Late::kBroken) return true;
    if (late == Late::kStill) {
      ++seen.late;
      return false;
    }
    channel->awaited = OpenerNumber::kNone;
    seen.idle = channel.get();
    return false;
  });
  return seen;
}

Result<OpenerChannels::Channel*> OpenerChannels::take() {
  Channel* made = nullptr;
  {
    MutexLock lock(mutex_);
    const Seen seen = look();
    if (seen.late > 0 && (seen.taken > 0 || seen.late == most_))
      return Error{Code::kUnavailable,
                   "the opener has not answered for a while: the file server of that root may hang"};
    if (seen.idle != nullptr) {
      seen.idle->taken = true;
      return seen.idle;
    }
    if (channels_.size() >= most_)
      return Error{Code::kUnavailable, "more threads ask the opener than were planned for"};
    made = channels_.emplace_back(std::make_unique<Channel>()).get();
    made->taken = true;
  }
  Result<UniqueFd> socket = connect();
  if (!socket) {
    drop(made);
    return std::move(socket).error();
  }
  made->socket = *std::move(socket);
  return made;
}

void OpenerChannels::give_back(Channel* channel, OpenerNumber awaited) {
  MutexLock lock(mutex_);
  channel->awaited = awaited;
  channel->taken = false;
}

void OpenerChannels::drop(Channel* channel) {
  std::unique_ptr<Channel> dropped;  // closed without the lock
  MutexLock lock(mutex_);
  for (auto one = channels_.begin(); one != channels_.end(); ++one) {
    if (one->get() != channel) continue;
    dropped = std::move(*one);
    channels_.erase(one);
    return;
  }
}

Result<UniqueFd> OpenerChannels::connect() const {
  const auto failed = [&](int error_number) {
    Error error = errno_error("connecting to the opener at " + printable(socket_), error_number);
    return Error{Code::kUnavailable, std::move(error.message)};
  };
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_.size() >= sizeof address.sun_path) return failed(ENAMETOOLONG);
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket || !limit_waiting(socket.get(), patience_)) return failed(errno);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return failed(errno);
  return socket;
}

}  // namespace millrace
