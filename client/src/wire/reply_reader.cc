#include "client/src/wire/reply_reader.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <thread>

namespace millrace {
inline namespace client {
namespace {

constexpr std::size_t kFirstBuffer = 16'384;
constexpr std::chrono::microseconds kLookOut{50};      // after an early wake-up
constexpr std::uint32_t kLongestMessage = 64U << 20U;  // the daemon's are far below

std::uint32_t length_at(const char* bytes) {
  std::uint32_t length = 0;
  for (std::size_t i = 0; i < sizeof length; ++i)
    length |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return length;
}

}  // namespace

ReplyReader::ReplyReader(UniqueFd socket)
    : socket_(std::move(socket)), waker_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), buffer_(kFirstBuffer) {}

void ReplyReader::wake() const {
  const std::uint64_t one = 1;
  // Full means that it is awake already.
  static_cast<void>(!waker_ || ::write(waker_.get(), &one, sizeof one) == sizeof one);
}

bool ReplyReader::hung_up() const {
  pollfd watched{socket_.get(), POLLRDHUP, 0};
  return socket_ && ::poll(&watched, 1, 0) > 0;
}

Result<bool> ReplyReader::receive(Deadline deadline, const std::function<void(v1::ServerMessage&)>& sink) {
  // What is there already costs no wait.
  if (!read() && !(wait(deadline) && read())) return false;
  Result<bool> news = take_messages(sink);
  if (news && !*news && woken_early_ && look_out()) news = take_messages(sink);
  return news;
}

// Going back to sleep would cost more than what is left to wait.
bool ReplyReader::look_out() {
  woken_early_ = false;
  const auto until = std::chrono::steady_clock::now() + kLookOut;
  while (!read()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::yield();
  }
  return true;
}

bool ReplyReader::wait(Deadline deadline) const {
  pollfd watched[2] = {{socket_.get(), POLLIN, 0}, {waker_.get(), POLLIN, 0}};
  const auto left = time_left(deadline);
  timespec time{};
  time.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000);
  time.tv_nsec = static_cast<long>(left.count() % 1'000'000'000);
  if (::ppoll(watched, waker_ ? 2 : 1, &time, nullptr) <= 0) return false;
  if (watched[1].revents != 0) {
    std::uint64_t count = 0;
    static_cast<void>(::read(waker_.get(), &count, sizeof count) == sizeof count);
  }
  return watched[0].revents != 0;
}

bool ReplyReader::read() {
  if (!socket_) return false;
  ssize_t got = -1;
  do {
    got = ::recv(socket_.get(), buffer_.data() + end_, buffer_.size() - end_, MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  if (got <= 0) {
    socket_.reset();
  } else {
    end_ += static_cast<std::size_t>(got);
  }
  return true;
}

Result<bool> ReplyReader::take_messages(const std::function<void(v1::ServerMessage&)>& sink) {
  bool news = !open();
  while (end_ - begin_ >= sizeof(std::uint32_t)) {
    const std::uint32_t length = length_at(buffer_.data() + begin_);
    if (length > kLongestMessage) {
      socket_.reset();
      return Error{Code::kInternal, "the daemon announces a message of " + to_text(Bytes{length}) +
                                        "; please report it with the daemon's version"};
    }
    const std::size_t whole = sizeof length + length;
    if (end_ - begin_ < whole) {
      if (begin_ + whole > buffer_.size()) buffer_.resize(begin_ + whole);
      break;
    }
    woken_early_ = length == 0;
    if (woken_early_) {
      begin_ += whole;
      continue;
    }
    if (!message_.ParseFromArray(buffer_.data() + begin_ + sizeof length, static_cast<int>(length))) {
      socket_.reset();
      return Error{Code::kInternal, "the daemon sent what is no message; please report it with the daemon's version"};
    }
    begin_ += whole;
    sink(message_);
    news = true;
  }
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
  return news;
}

}  // namespace client
}  // namespace millrace
