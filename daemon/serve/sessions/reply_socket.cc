#include "daemon/serve/sessions/reply_socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstdint>
#include <utility>

namespace millrace {
namespace {

// What waits uncounted, and of what is more how much is charged at a time; the most that an empty buffer keeps.
constexpr std::uint64_t kStep = 64 << 10;

Error unread(Bytes bytes) {
  return Error{Code::kExhausted, "the client leaves " + to_text(bytes) +
                                     " of messages unread: read the reply socket all the while, in a thread of its own "
                                     "if need be"};
}

Error no_room(const Error& refusal) {
  return Error{refusal.code,
               "the client leaves messages unread, and there is no room to keep more for it: read the reply socket all "
               "the while; " +
                   refusal.message};
}

Error closed() {
  return Error{Code::kPrecondition,
               "the client has closed its reply socket: keep it open, and read it, as long as the session"};
}

void append(std::string& out, const v1::ServerMessage& message) {
  const std::size_t at = out.size();
  const auto length = static_cast<std::uint32_t>(message.ByteSizeLong());
  out.resize(at + sizeof length + length);
  for (std::size_t i = 0; i < sizeof length; ++i) out[at + i] = static_cast<char>(length >> (8 * i));
  message.SerializeWithCachedSizesToArray(reinterpret_cast<std::uint8_t*>(out.data() + at + sizeof length));
}

}  // namespace

void ReplySocket::when_hung_up(std::function<void()> look) {
  if (!socket_.is_open()) return;
  socket_.async_wait(boost::asio::posix::stream_descriptor::wait_error,
                     [weak = weak_from_this(), look = std::move(look)](const boost::system::error_code& error) {
                       const auto self = weak.lock();
                       if (self && !error && self->socket_.is_open()) look();
                     });
}

std::optional<Error> ReplySocket::closed_by_client() {
  pollfd end{.fd = socket_.native_handle(), .events = 0, .revents = 0};
  if (::poll(&end, 1, 0) > 0 && (end.revents & POLLHUP) != 0) return closed();
  return std::nullopt;
}

Result<std::shared_ptr<ReplySocket>> ReplySocket::create(boost::asio::io_context& control, UniqueFd socket,
                                                         std::shared_ptr<Account> account) {
  std::shared_ptr<ReplySocket> made(new ReplySocket(control, std::move(account)));
  boost::system::error_code failed;
  made->socket_.assign(socket.get(), failed);
  if (failed) return errno_error("watching a reply socket", failed.value());
  static_cast<void>(socket.release());  // the descriptor is the stream's from here on
  return made;
}

void ReplySocket::send(v1::ServerMessage message) {
  if (finishing_ || !socket_.is_open()) return;
  append(unwritten_, message);
  if (!waiting_) write_some();
  if (!waiting_) return;  // all of it was taken, or nothing ever will be
  if (Bytes{unsent()} > kMaxUnread) return give_up(unread(Bytes{unsent()}));
  if (const Result<void> charged = charge(); !charged) give_up(no_room(charged.error()));
}

Result<void> ReplySocket::charge() {
  const std::uint64_t wanted = unwritten_.capacity() / kStep * kStep;
  if (!account_ || wanted <= room_.amount()) return {};
  MILLRACE_TRY(Charge more, account_->charge(Resource::kRequests, wanted - room_.amount()));
  room_.absorb(std::move(more));
  return {};
}

void ReplySocket::let_go() {
  unwritten_.clear();
  written_ = 0;
  room_.refund();
  if (unwritten_.capacity() > kStep) unwritten_.shrink_to_fit();
}

// To a client that has something to read already it would say nothing.
void ReplySocket::send_early_wake_up() {
  if (finishing_ || waiting_ || !socket_.is_open()) return;
  unwritten_.append(sizeof(std::uint32_t), 0);
  write_some();
}

void ReplySocket::write_some() {
  while (written_ < unwritten_.size()) {
    const ssize_t sent = ::send(socket_.native_handle(), unwritten_.data() + written_, unwritten_.size() - written_,
                                MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      written_ += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return wait_for_room();
    } else if (errno != EINTR) {
      return give_up(closed());
    }
  }
  let_go();
  if (finishing_) close();
}

void ReplySocket::wait_for_room() {
  waiting_ = true;
  unwritten_.erase(0, std::exchange(written_, 0));
  socket_.async_wait(boost::asio::posix::stream_descriptor::wait_write,
                     [weak = weak_from_this()](const boost::system::error_code& error) {
                       const auto self = weak.lock();
                       if (!self || error) return;
                       self->waiting_ = false;
                       self->write_some();
                     });
}

void ReplySocket::when_readable(std::function<void()> ready) {
  if (!socket_.is_open()) return;
  socket_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [weak = weak_from_this(), ready = std::move(ready)](const boost::system::error_code& error) {
                       const auto self = weak.lock();
                       if (self && !error && self->socket_.is_open()) ready();
                     });
}

// The session may be in the midst of a step that sends: it hears of it afterwards.
void ReplySocket::give_up(const Error& why) {
  close();
  boost::asio::post(control_, [weak = weak_from_this(), why] {
    const auto self = weak.lock();
    if (self && self->on_lost_) std::exchange(self->on_lost_, nullptr)(why);
  });
}

void ReplySocket::finish() {
  finishing_ = true;
  on_lost_ = nullptr;
  if (!waiting_) write_some();
}

void ReplySocket::close() {
  boost::system::error_code ignored;
  socket_.close(ignored);
  let_go();
}

}  // namespace millrace
