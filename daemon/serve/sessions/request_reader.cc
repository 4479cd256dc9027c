#include "daemon/serve/sessions/request_reader.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "daemon/door/peer.h"
#include "daemon/door/sleep_breaker.h"
#include "proto/base/sockets/socket_message.h"

namespace millrace {
namespace {

constexpr std::size_t kUsualBuffer = 64 << 10;  // what an idle session keeps
constexpr std::size_t kAtOnce = 256 << 10;      // received before it is everybody else's turn
constexpr int kFramesAtOnce = 16;
constexpr std::size_t kLookedAtAtOnce = 16 << 10;  // bytes beside images, likewise
constexpr std::size_t kPrefix = sizeof(std::uint32_t);

Error too_long(std::uint32_t length) {
  return Error{Code::kExhausted, "a message of " + std::to_string(length) + " bytes; at most " +
                                     std::to_string(kMessageMost.count) +
                                     " are taken: ask for less at a time, or, if nobody "
                                     "asked for so much, write a length before each message"};
}

}  // namespace

RequestReader::RequestReader(std::shared_ptr<ReplySocket> socket, Surroundings surroundings, Port& port)
    : socket_(std::move(socket)), around_(std::move(surroundings)), port_(port), later_(around_.control) {}

void RequestReader::start() {
  tidy();
  wait();
}

// A client that has only shut its end for writing is answered all the same.
void RequestReader::wait() {
  if (ended_) {
    if (const std::optional<Error> closed = socket_->closed_by_client()) return give_up(*closed);
    return socket_->when_hung_up([weak = weak_from_this()] {
      if (const auto self = weak.lock(); self && !self->stopped_) self->wait();
    });
  }
  socket_->when_readable([weak = weak_from_this()] {
    if (const auto self = weak.lock(); self && !self->stopped_) self->read();
  });
}

void RequestReader::read() {
  const auto working = around_.time.work_for(around_.user, around_.costs);
  if (receive()) take_frames();
}

// false: nothing more is read.
bool RequestReader::receive() {
  std::optional<ShortSleeps> guard;
  if (!kernel_refuses_descriptors()) guard.emplace();
  for (std::size_t received = 0; received < kAtOnce && end_ < size_ && !has_frame();) {
    const ReceivedMessage got =
        receive_message(socket_->descriptor(), {bytes_.get() + end_, size_ - end_}, 0, MSG_DONTWAIT);
    if (got.dropped) {
      stopped_ = true;
      port_.sent_descriptor();
      return false;
    }
    if (got.bytes < 0 && errno == EINTR) continue;
    if (got.bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    ended_ = got.bytes <= 0;
    if (ended_) break;  // what it has said before still counts
    received += static_cast<std::size_t>(got.bytes);
    end_ += static_cast<std::size_t>(got.bytes);
    if (!make_room()) return false;
  }
  return true;
}

std::optional<std::uint32_t> RequestReader::next_length() const {
  if (end_ - begin_ < kPrefix) return std::nullopt;
  std::uint32_t length = 0;
  std::memcpy(&length, bytes_.get() + begin_, kPrefix);  // little-endian, as this machine is
  return length;
}

bool RequestReader::has_frame() const {
  const std::optional<std::uint32_t> length = next_length();
  return length && end_ - begin_ >= kPrefix + *length;
}

// For the rest of a frame that has begun to come. false: it will not be taken.
bool RequestReader::make_room() {
  const std::optional<std::uint32_t> length = next_length();
  if (length && Bytes{*length} > kMessageMost) return give_up(too_long(*length)), false;
  const std::size_t whole = kPrefix + length.value_or(0);
  if (begin_ + whole <= size_) return true;
  if (whole <= size_) return move_to(bytes_.get()), true;
  if (around_.account) {
    Result<Charge> room = around_.account->charge(Resource::kRequests, whole);
    if (!room) return give_up(room.error()), false;
    room_ = *std::move(room);
  }
  auto larger = std::make_unique_for_overwrite<std::byte[]>(whole);
  move_to(larger.get());
  bytes_ = std::move(larger);
  size_ = whole;
  return true;
}

// What is not taken yet.
void RequestReader::move_to(std::byte* begin) {
  std::memmove(begin, bytes_.get() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
}

void RequestReader::take_frames() {
  if (around_.time.must_wait(around_.user)) return take_frames_later();
  const auto working = around_.time.work_for(around_.user, around_.costs);
  std::size_t looked_at = 0;
  for (int taken = 0; !stopped_ && has_frame(); ++taken) {
    if (taken == kFramesAtOnce || looked_at > kLookedAtAtOnce) {
      return boost::asio::post(around_.control, [weak = weak_from_this()] {
        if (const auto self = weak.lock(); self && !self->stopped_) self->take_frames();
      });
    }
    const std::uint32_t length = *next_length();
    const std::size_t beside = bytes_beside_images({bytes_.get() + begin_ + kPrefix, length}, kLookedAtHere.count);
    if (Bytes{length} > kParsedHere || Bytes{beside} > kLookedAtHere) return take_elsewhere(length);
    looked_at += beside;
    take(length);
  }
  if (stopped_ || !make_room()) return;
  tidy();
  wait();
}

void RequestReader::take_frames_later() {
  later_.expires_after(ControlTime::kAskAgain);
  later_.async_wait([weak = weak_from_this()](boost::system::error_code cancelled) {
    if (const auto self = weak.lock(); self && !cancelled && !self->stopped_) self->take_frames();
  });
}

void RequestReader::take(std::uint32_t length) {
  const std::byte* const content = bytes_.get() + begin_ + kPrefix;
  begin_ += kPrefix + length;
  std::optional<TakenIn> taken =
      take_in({content, length}, message_untrusted_, around_.limits.now(), *around_.datasets, around_.account.get());
  empty_for_next(message_untrusted_, Bytes{length});
  if (!taken) return give_up(no_message());
  port_.requested(std::move(taken->request), std::move(taken->room));
}

// What was read meanwhile would overtake it. The parsing thread gets the bytes, this one goes on with the rest.
void RequestReader::take_elsewhere(std::uint32_t length) {
  const std::size_t content = begin_ + kPrefix;
  auto whole = std::move(bytes_);
  const std::size_t after = content + length, rest = end_ - after;
  size_ = std::max(kUsualBuffer, rest);
  bytes_ = std::make_unique_for_overwrite<std::byte[]>(size_);
  std::memcpy(bytes_.get(), whole.get() + after, rest);
  begin_ = 0;
  end_ = rest;
  boost::asio::post(around_.parsing, [weak = weak_from_this(), &control = around_.control,
                                      limits = around_.limits.now(), datasets = around_.datasets,
                                      account = around_.account, room = std::move(room_), whole = std::move(whole),
                                      content, length]() mutable {
    const auto begun = ControlTime::Clock::now();
    v1::ClientMessage message;
    std::optional<TakenIn> taken = take_in({whole.get() + content, length}, message, limits, *datasets, account.get());
    const std::chrono::nanoseconds took = ControlTime::Clock::now() - begun;
    boost::asio::post(control, [weak = std::move(weak), taken = std::move(taken), took]() mutable {
      const auto self = weak.lock();
      if (!self || self->stopped_) return;
      const auto working = self->around_.time.work_for(self->around_.user, self->around_.costs);
      self->around_.time.add(self->around_.user, took);
      if (!taken) return self->give_up(no_message());
      self->port_.requested(std::move(taken->request), std::move(taken->room));
      self->take_frames();
    });
  });
}

// Its session may be there for as long as the client keeps a view of a tensor; half a request must not be charged until
// then.
void RequestReader::stop() {
  stopped_ = true;
  bytes_.reset();
  size_ = begin_ = end_ = 0;
  room_.refund();
}

void RequestReader::give_up(const Error& why) {
  stopped_ = true;
  port_.unreadable(why);
}

// An idle session keeps no more than the usual.
void RequestReader::tidy() {
  if (begin_ < end_) return;
  begin_ = end_ = 0;
  if (size_ == kUsualBuffer) return;
  bytes_ = std::make_unique_for_overwrite<std::byte[]>(kUsualBuffer);
  size_ = kUsualBuffer;
  room_.refund();
}

}  // namespace millrace
