#include "daemon/serve/handoff_server.h"

#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <map>
#include <utility>
#include <vector>

#include "daemon/serve/handoff_socket.h"

namespace millrace {
namespace {

namespace asio = boost::asio;

constexpr int kAcceptedAtOnce = 16;  // then it is somebody else's turn on the control thread
constexpr std::uint32_t kComing = 32;
constexpr std::uint32_t kComingPerUser = 8;
constexpr std::chrono::milliseconds kWithoutDescriptors{
    100};  // until accept() is tried again when the process has none left

enum class Phase : std::uint8_t { kAccepted, kWelcomed, kSeated };

struct Guest {
  Guest(asio::io_context& control, std::shared_ptr<const Caller> who)
      : socket(control), patience(control), caller(std::move(who)) {}

  asio::posix::stream_descriptor socket;
  asio::steady_timer patience;
  std::shared_ptr<const Caller> caller;
  Ticket ticket{};
  Phase phase = Phase::kAccepted;
  bool wants_reply_socket = false;
};

struct ReplyPair {
  UniqueFd ours;  // only written to, never waited for
  UniqueFd clients;
};

Result<ReplyPair> make_reply_pair() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return errno_error("making a reply socket", errno);
  ReplyPair pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
  ::shutdown(pair.ours.get(), SHUT_RD);  // what a client writes to it goes nowhere
  return pair;
}

// In a time that says nothing of where the two differ.
bool same(const Ticket& a, const Ticket& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

Result<Ticket> new_ticket() {
  Ticket ticket{};
  if (::getrandom(ticket.data(), ticket.size(), 0) != static_cast<ssize_t>(ticket.size()))
    return errno_error("asking the kernel for random bits", errno);
  return ticket;
}

}  // namespace

struct HandoffServer::State : std::enable_shared_from_this<State> {
  State(asio::io_context& io, Options wanted, Counters& figures, Events& reports)
      : control(io), options(std::move(wanted)), counters(figures), events(reports), listener(io), breath(io) {}

  void wait_for_client();
  void accept_some();
  bool accept_one();
  void welcome_or_refuse(UniqueFd socket);
  void admit(UniqueFd socket, Caller caller);
  void wait_for_message(ClientId client);
  void read(ClientId client);
  void handle(ClientId client, const Datagram& datagram);
  Result<void> answer(ClientId client, Guest& guest, const Datagram& datagram);
  Result<void> welcome(ClientId client, Guest& guest);
  Result<void> give_ring(ClientId client, HandoffRing ring);
  void limit_patience(ClientId client, Guest& guest, std::chrono::milliseconds limit, std::string why);
  Guest* find(ClientId client);
  bool end(ClientId client);             // whether it had been welcomed
  void end_and_report(ClientId client);  // likewise, to Events
  void refuse(ClientId client, const Error& why);

  asio::io_context& control;
  const Options options;
  Counters& counters;
  Events& events;
  asio::posix::stream_descriptor listener;
  asio::steady_timer breath;
  std::map<ClientId, std::unique_ptr<Guest>> guests;
  std::uint64_t next_client = 1;
  dev_t device = 0;  // of the socket file
  ino_t inode = 0;
};

// ---- coming ----

void HandoffServer::State::wait_for_client() {
  listener.async_wait(asio::posix::stream_descriptor::wait_read,
                      [weak = weak_from_this()](const boost::system::error_code& error) {
                        const auto self = weak.lock();
                        if (self && !error) self->accept_some();
                      });
}

void HandoffServer::State::accept_some() {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    if (accept_one()) continue;
    if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS) break;
    breath.expires_after(kWithoutDescriptors);  // the socket stays readable, so waiting for it would spin
    breath.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      const auto self = weak.lock();
      if (self && !error) self->accept_some();
    });
    return;
  }
  wait_for_client();
}

// false: errno says why.
bool HandoffServer::State::accept_one() {
  UniqueFd socket(::accept4(listener.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) return errno == EINTR || errno == ECONNABORTED;
  welcome_or_refuse(std::move(socket));
  return true;
}

void HandoffServer::State::welcome_or_refuse(UniqueFd socket) {
  const auto turn_away = [&](const Error& why) {
    counters.add(MetricId::requests_refused);
    static_cast<void>(send_reply(socket.get(), refused_reply(why)));
    hang_up(socket.get());
  };
  Result<Caller> caller = caller_of(socket.get());
  if (!caller) return turn_away(caller.error());
  if (guests.size() >= options.connections)
    return turn_away({Code::kExhausted,
                      "hand-off: " + std::to_string(options.connections) +
                          " connections are open: close sessions, or raise limits.sessions in the daemon's settings"});
  const auto of_user = std::count_if(guests.begin(), guests.end(),
                                     [&](const auto& entry) { return entry.second->caller->uid == caller->uid; });
  if (of_user >= options.connections_per_user)
    return turn_away({Code::kExhausted,
                      "hand-off: " + std::to_string(options.connections_per_user) + " connections of user " +
                          std::to_string(caller->uid) +
                          " are open: close sessions, or raise limits.sessions_per_user in the daemon's settings"});
  admit(std::move(socket), *std::move(caller));
}

void HandoffServer::State::admit(UniqueFd socket, Caller caller) {
  const ClientId client{next_client++};
  auto guest = std::make_unique<Guest>(control, std::make_shared<const Caller>(std::move(caller)));
  boost::system::error_code failed;
  guest->socket.assign(socket.get(), failed);
  if (failed) return;                   // the kernel has no room to watch it; closing says that as well as anything
  static_cast<void>(socket.release());  // the guest's from here on
  limit_patience(client, *guest, options.hello_within, "no Hello came in time");
  guests.emplace(client, std::move(guest));
  counters.add(MetricId::handoff_connections);
  wait_for_message(client);
}

// ---- being there ----

void HandoffServer::State::wait_for_message(ClientId client) {
  Guest* const guest = find(client);
  if (guest == nullptr) return;
  guest->socket.async_wait(asio::posix::stream_descriptor::wait_read,
                           [weak = weak_from_this(), client](const boost::system::error_code& error) {
                             const auto self = weak.lock();
                             if (self && !error) self->read(client);
                           });
}

// One message, then everybody else's turn: a flood delays only its sender.
void HandoffServer::State::read(ClientId client) {
  Guest* const guest = find(client);
  if (guest == nullptr) return;
  const Datagram datagram = receive_datagram(guest->socket.native_handle());
  if (datagram.what == Received::kEnd) return end_and_report(client);
  if (datagram.what == Received::kMessage) handle(client, datagram);
  wait_for_message(client);  // if it is still there
}

void HandoffServer::State::handle(ClientId client, const Datagram& datagram) {
  const Result<void> answered = answer(client, *find(client), datagram);
  if (answered) return;
  counters.add(MetricId::requests_refused);
  if (Guest* const still = find(client))
    static_cast<void>(send_reply(still->socket.native_handle(), refused_reply(answered.error())));
  end_and_report(client);
}

// An error ends the connection.
Result<void> HandoffServer::State::answer(ClientId client, Guest& guest, const Datagram& datagram) {
  if (datagram.with_descriptors)
    return Error{Code::kInvalid, "hand-off: a message with a descriptor; the daemon takes none from its clients"};
  MILLRACE_TRY(const HandoffMessage message, parse_handoff(datagram.bytes));
  if (const auto* hello = std::get_if<HandoffHello>(&message)) {
    if (guest.phase != Phase::kAccepted) return Error{Code::kInvalid, "hand-off: a second Hello"};
    guest.wants_reply_socket = hello->wants_reply_socket;
    return welcome(client, guest);
  }
  if (guest.phase != Phase::kSeated) return Error{Code::kInvalid, "hand-off: a RingRequest before the session is open"};
  return give_ring(client, std::get<HandoffRing>(message));
}

Result<void> HandoffServer::State::welcome(ClientId client, Guest& guest) {
  MILLRACE_TRY(guest.ticket, new_ticket());
  MILLRACE_TRY_VOID(send_reply(guest.socket.native_handle(), welcome_reply(guest.ticket)));
  guest.phase = Phase::kWelcomed;
  limit_patience(client, guest, options.session_within, "no session was opened in time");
  return {};
}

Result<void> HandoffServer::State::give_ring(ClientId client, HandoffRing ring) {
  const Result<UniqueFd> made = events.ring_wanted(client, ring.size_untrusted);
  Guest* const guest = find(client);
  if (guest == nullptr) return {};  // closed by whom it was asked of
  const int socket = guest->socket.native_handle();
  if (!made) return send_reply(socket, refused_reply(made.error()));
  const int descriptor = made->get();
  return send_reply(socket, ring_reply(ring.size_untrusted), {&descriptor, 1});
}

void HandoffServer::State::limit_patience(ClientId client, Guest& guest, std::chrono::milliseconds limit,
                                          std::string why) {
  guest.patience.expires_after(limit);
  guest.patience.async_wait([weak = weak_from_this(), client, why = std::move(why),
                             phase = guest.phase](const auto& error) {
    const auto self = weak.lock();
    if (!self || error) return;
    Guest* const late = self->find(client);
    if (late == nullptr || late->phase != phase) return;  // it made it while this was on its way
    static_cast<void>(send_reply(late->socket.native_handle(), refused_reply({Code::kDeadline, "hand-off: " + why})));
    self->end_and_report(client);
  });
}

Guest* HandoffServer::State::find(ClientId client) {
  const auto found = guests.find(client);
  return found == guests.end() ? nullptr : found->second.get();
}

// ---- going ----

bool HandoffServer::State::end(ClientId client) {
  const auto entry = guests.extract(client);
  if (entry.empty()) return false;
  hang_up(entry.mapped()->socket.native_handle());
  counters.subtract(MetricId::handoff_connections);
  return entry.mapped()->phase != Phase::kAccepted;
}

void HandoffServer::State::end_and_report(ClientId client) {
  if (end(client)) events.disconnected(client);
}

void HandoffServer::State::refuse(ClientId client, const Error& why) {
  if (Guest* const guest = find(client))
    static_cast<void>(send_reply(guest->socket.native_handle(), refused_reply(why)));
  end(client);
}

// ---- the server ----

HandoffServer::Options HandoffServer::Options::of(std::string path, const SessionLimits& limits) {
  return {.path = std::move(path),
          .connections = limits.sessions + kComing,
          .connections_per_user = limits.sessions_per_user + kComingPerUser};
}

Result<std::unique_ptr<HandoffServer>> HandoffServer::create(asio::io_context& control, Options options,
                                                             Counters& counters, Events& events) {
  MILLRACE_TRY(UniqueFd listener, listen_for_handoff(options.path));
  auto state = std::make_shared<State>(control, std::move(options), counters, events);
  struct stat status {};
  if (::lstat(state->options.path.c_str(), &status) != 0)
    return errno_error("looking at " + state->options.path, errno);
  state->device = status.st_dev;
  state->inode = status.st_ino;
  boost::system::error_code failed;
  state->listener.assign(listener.get(), failed);
  if (failed) return errno_error("watching the hand-off socket", failed.value());
  static_cast<void>(listener.release());
  state->wait_for_client();
  return std::unique_ptr<HandoffServer>(new HandoffServer(std::move(state)));
}

Result<std::unique_ptr<HandoffServer>> HandoffServer::create(asio::io_context& control, std::string path,
                                                             const SessionLimits& limits, Counters& counters,
                                                             Events& events) {
  return create(control, Options::of(std::move(path), limits), counters, events);
}

HandoffServer::HandoffServer(std::shared_ptr<State> state) : state_(std::move(state)) {}

HandoffServer::~HandoffServer() {
  while (!state_->guests.empty()) state_->end(state_->guests.begin()->first);
  struct stat status {};
  const std::string& path = state_->options.path;
  if (::lstat(path.c_str(), &status) == 0 && status.st_dev == state_->device && status.st_ino == state_->inode)
    ::unlink(path.c_str());
}

std::optional<HandoffServer::Connection> HandoffServer::find(const Ticket& ticket_untrusted) const {
  for (const auto& [id, guest] : state_->guests) {
    if (guest->phase != Phase::kAccepted && same(guest->ticket, ticket_untrusted)) return Connection{id, guest->caller};
  }
  return std::nullopt;
}

Result<UniqueFd> HandoffServer::send_segment(ClientId client, int read_only_fd, Bytes size) {
  Guest* const guest = state_->find(client);
  if (guest == nullptr) return Error{Code::kUnavailable, "hand-off: the client is gone"};
  MILLRACE_CHECK(guest->phase == Phase::kWelcomed);
  guest->phase = Phase::kSeated;
  guest->patience.cancel();
  Result<ReplyPair> replies = guest->wants_reply_socket ? make_reply_pair() : ReplyPair{};
  if (!replies) return std::move(replies).error();
  const std::array<int, 2> descriptors{read_only_fd, replies->clients.get()};
  const Result<void> sent = send_reply(guest->socket.native_handle(), segment_reply(size),
                                       std::span(descriptors).first(guest->wants_reply_socket ? 2 : 1));
  if (sent) return std::move(replies->ours);
  ::shutdown(guest->socket.native_handle(), SHUT_RDWR);  // the event loop finds its end and reports it
  return sent.error();
}

void HandoffServer::refuse(ClientId client, const Error& why) {
  state_->refuse(client, why);
}

void HandoffServer::close(ClientId client) {
  state_->end(client);
}

}  // namespace millrace
