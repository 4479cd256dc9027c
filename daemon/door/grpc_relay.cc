#include "daemon/door/grpc_relay.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <utility>

#include "daemon/door/peer.h"

namespace millrace {
namespace {

// Of a pair's socket: what waits in the kernel beside what waits in the client's own connection.
constexpr int kBetween = 64 << 10;
constexpr std::chrono::seconds kRefusedHeardFor{1};  // who was refused

void append_frame(std::string& out, std::uint8_t type, std::string_view payload) {
  const auto length = static_cast<std::uint32_t>(payload.size());
  for (const int shift : {16, 8, 0}) out += static_cast<char>(length >> shift);
  out += static_cast<char>(type);
  out.append(5, '\0');  // no flags, the connection's own stream
  out += payload;
}

Result<std::pair<UniqueFd, UniqueFd>> pair_of_sockets() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
    return errno_error("making a pair of sockets", errno);
  for (const int end : ends) ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &kBetween, sizeof kBetween);
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

struct Received {
  ssize_t bytes;  // 0: the other side says nothing more
  bool descriptors = false;
};

// Takes no descriptor: the kernel closes those that came. recvmsg(), which SleepBreaker knows.
Received receive(int socket, GrpcRelay::Buffer& buffer) {
  iovec part{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const ssize_t got = ::recvmsg(socket, &message, MSG_DONTWAIT);
  return {got, got >= 0 && (message.msg_flags & MSG_CTRUNC) != 0};
}

bool again(const Received& received) {
  return received.bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

}  // namespace

std::string goaway(std::string_view why, bool first) {
  constexpr std::uint8_t kSettings = 4;
  constexpr std::uint8_t kGoaway = 7;
  std::string frames;
  if (first) append_frame(frames, kSettings, {});
  append_frame(frames, kGoaway, std::string("\0\0\0\0\0\0\0\x0b", 8) + std::string(why));
  return frames;
}

Result<void> HeldByUser::change(std::uint64_t before, std::uint64_t now) {
  held_ = held_ - before + now;
  const std::uint64_t wanted = held_ > kUncharged ? (held_ - kUncharged) / kStep * kStep : 0;
  if (wanted < charge_.amount()) charge_.shrink_to(wanted);
  if (wanted <= charge_.amount()) return {};
  Result<Charge> more = account_->charge(Resource::kRequests, wanted - charge_.amount());
  if (!more) return Error{more.error().code, "half-sent messages find no room: " + more.error().message};
  charge_.absorb(*std::move(more));
  return {};
}

Result<GrpcRelay::Made> GrpcRelay::create(Surroundings around, UniqueFd client, std::shared_ptr<HeldByUser> held,
                                          Reports reports) {
  MILLRACE_TRY(auto ends, pair_of_sockets());
  std::shared_ptr<GrpcRelay> relay(new GrpcRelay(around, std::move(held), std::move(reports)));
  boost::system::error_code failed;
  relay->client_.assign(client.get(), failed);
  if (failed) return errno_error("watching a connection", failed.value());
  static_cast<void>(client.release());  // the descriptor is the relay's from here on
  relay->grpc_.assign(ends.first.get(), failed);
  if (failed) return errno_error("watching gRPC's end of a connection", failed.value());
  static_cast<void>(ends.first.release());
  return Made{std::move(relay), std::move(ends.second)};
}

GrpcRelay::GrpcRelay(Surroundings around, std::shared_ptr<HeldByUser> held, Reports reports)
    : around_(around),
      by_user_(std::move(held)),
      reports_(std::move(reports)),
      client_(around.io),
      grpc_(around.io),
      pause_(around.io) {}

GrpcRelay::~GrpcRelay() {
  static_cast<void>(by_user_->change(held_, 0));
  if (client_.is_open()) hang_up(UniqueFd(client_.release()));
}

void GrpcRelay::begin() {
  wait_for_client();
  wait_for_grpc();
}

void GrpcRelay::cut_off() {
  if (!client_.is_open()) return;
  ::shutdown(client_.native_handle(), SHUT_RDWR);
  if (!client_is_over_) client_ended();
}

// Waits until `descriptor` can do `what`, then has `next` go on, unless the relay is gone or at its end.
template <class Next>
void GrpcRelay::wait(Descriptor& descriptor, Descriptor::wait_type what, Next next) {
  descriptor.async_wait(what, [weak = weak_from_this(), next](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (self && !error && self->client_.is_open()) (self.get()->*next)();
  });
}

// From the client to gRPC.

void GrpcRelay::wait_for_client() {
  wait(client_, Descriptor::wait_read, &GrpcRelay::take_from_client);
}

void GrpcRelay::take_from_client() {
  if (client_is_over_) return;
  const Received received = receive(client_.native_handle(), around_.buffer);
  if (again(received)) return wait_for_client();
  if (received.descriptors) reports_.sent_descriptor();
  if (received.bytes <= 0) return client_ended();
  const ByteView bytes = ByteView(around_.buffer).first(static_cast<std::size_t>(received.bytes));
  const Result<std::uint32_t> small_frames = look_at(bytes);
  if (!small_frames) return refuse(small_frames.error());
  pause_for_ = around_.meter.sent(by_user_->user(), *small_frames);
  pass_on(bytes);
}

Result<std::uint32_t> GrpcRelay::look_at(ByteView bytes) {
  MILLRACE_TRY(const std::uint32_t small_frames, frames_.take_from_client(bytes));
  MILLRACE_TRY_VOID(charge());
  return small_frames;
}

Result<void> GrpcRelay::charge() {
  const std::uint64_t now = frames_.held();
  return by_user_->change(std::exchange(held_, now), now);
}

void GrpcRelay::pass_on(ByteView bytes) {
  const std::optional<ByteView> left = send_some(grpc_, bytes);
  if (!left) return client_ended();  // gRPC has ended it
  if (left->empty()) return read_client_again();
  to_grpc_.assign(left->begin(), left->end());
  wait(grpc_, Descriptor::wait_write, &GrpcRelay::pass_on_the_rest);
}

void GrpcRelay::pass_on_the_rest() {
  if (client_is_over_) return;
  const std::vector<std::byte> bytes = std::exchange(to_grpc_, {});
  pass_on(bytes);
}

void GrpcRelay::read_client_again() {
  if (pause_for_ == std::chrono::nanoseconds::zero()) return wait_for_client();
  if (has_gone()) return client_ended();  // so that it frees its place
  pause_.expires_after(std::exchange(pause_for_, std::chrono::nanoseconds::zero()));
  pause_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (self && !error && self->client_.is_open()) self->take_from_client();
  });
}

// The client has closed its end, whatever of its bytes is still unread.
bool GrpcRelay::has_gone() {
  pollfd end{.fd = client_.native_handle(), .events = 0, .revents = 0};
  return ::poll(&end, 1, 0) > 0 && (end.revents & (POLLHUP | POLLERR)) != 0;
}

void GrpcRelay::client_ended() {
  client_is_over_ = true;
  ::shutdown(grpc_.native_handle(), SHUT_WR);
}

void GrpcRelay::refuse(const Error& why) {
  if (client_hears_ && to_client_.empty() && frames_.server_is_between_frames()) {
    const std::string frames = goaway(why.message, false);
    static_cast<void>(::send(client_.native_handle(), frames.data(), frames.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
  }
  ::shutdown(client_.native_handle(), SHUT_WR);
  client_hears_ = false;
  to_client_ = {};
  client_ended();
  lingers_ = true;
  pause_.expires_after(kRefusedHeardFor);
  pause_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    if (const auto self = weak.lock(); self && !error) self->stop_lingering();
  });
  drop_what_comes();
  reports_.refused(why);
}

// Closing at once would be an error of the client's next write, and gRPC does not read any more after one.
void GrpcRelay::drop_what_comes() {
  if (!lingers_) return;
  const Received received = receive(client_.native_handle(), around_.buffer);
  if (received.bytes <= 0 && !again(received)) return stop_lingering();
  wait(client_, Descriptor::wait_read, &GrpcRelay::drop_what_comes);
}

void GrpcRelay::stop_lingering() {
  if (!std::exchange(lingers_, false)) return;
  end_connection(client_.native_handle());
  if (grpc_is_over_) end();
}

// From gRPC to the client.

void GrpcRelay::wait_for_grpc() {
  wait(grpc_, Descriptor::wait_read, &GrpcRelay::take_from_grpc);
}

void GrpcRelay::take_from_grpc() {
  const Received received = receive(grpc_.native_handle(), around_.buffer);
  if (again(received)) return wait_for_grpc();
  if (received.bytes <= 0) return end();
  const ByteView bytes = ByteView(around_.buffer).first(static_cast<std::size_t>(received.bytes));
  frames_.take_from_server(bytes);
  static_cast<void>(charge());  // it can only be less
  answer(bytes);
}

// Nothing is read of gRPC before the client has taken it all: so gRPC keeps what the client does not read, as ever.
void GrpcRelay::answer(ByteView bytes) {
  std::optional<ByteView> left = ByteView();
  if (client_hears_) left = send_some(client_, bytes);
  if (!left) client_hears_ = false;
  if (!left || left->empty()) return wait_for_grpc();
  to_client_.assign(left->begin(), left->end());
  wait(client_, Descriptor::wait_write, &GrpcRelay::answer_the_rest);
}

void GrpcRelay::answer_the_rest() {
  const std::vector<std::byte> bytes = std::exchange(to_client_, {});
  answer(bytes);
}

void GrpcRelay::end() {
  grpc_is_over_ = true;
  if (lingers_) return;
  const auto keep = shared_from_this();
  pause_.cancel();
  hang_up(UniqueFd(client_.release()));
  grpc_.close();
  static_cast<void>(by_user_->change(std::exchange(held_, 0), 0));
  reports_.ended();
}

std::optional<ByteView> GrpcRelay::send_some(Descriptor& to, ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(to.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return bytes;
    } else if (errno != EINTR) {
      return std::nullopt;
    }
  }
  return bytes;
}

}  // namespace millrace
