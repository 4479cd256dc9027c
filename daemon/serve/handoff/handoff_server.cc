#include "daemon/serve/handoff/handoff_server.h"

#include <sys/random.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <map>
#include <utility>
#include <vector>

#include "daemon/door/peer.h"
#include "daemon/door/unix_listener.h"
#include "daemon/serve/handoff/handoff_socket.h"

namespace millrace {
namespace {

namespace asio = boost::asio;

enum class Phase : std::uint8_t { kAccepted, kWelcomed, kOpening, kSeated };

struct Guest {
  Guest(asio::io_context& control, std::shared_ptr<const Caller> who, Charge charged)
      : socket(control), patience(control), caller(std::move(who)), place(std::move(charged)) {}

  asio::posix::stream_descriptor socket;
  asio::steady_timer patience;
  std::shared_ptr<const Caller> caller;
  Charge place;
  Ticket ticket{};
  Phase phase = Phase::kAccepted;
  bool said_goodbye = false;
  bool let_go = false;
};

// Of requests that a client can send before the daemon reads: an image of usual size fits. The kernel doubles it for its
// own records, and bounds it (net.core.wmem_max).
constexpr int kRequestBuffer = 512 << 10;

struct ReplyPair {
  UniqueFd ours;
  UniqueFd clients;
};

Result<ReplyPair> make_reply_pair() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return errno_error("making a reply socket", errno);
  ReplyPair pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
  ::setsockopt(pair.clients.get(), SOL_SOCKET, SO_SNDBUF, &kRequestBuffer, sizeof kRequestBuffer);
  refuse_descriptors(pair.ours.get());
  return pair;
}

// The guest's and its caller's: files may be opened for it a moment after it has gone. Who parts from it last must not
// sleep.
std::shared_ptr<const HandoffConnection> shared_connection(UniqueFd socket) {
  auto connection = std::make_unique<HandoffConnection>();
  connection->fd = std::move(socket);
  return {connection.release(), [](HandoffConnection* ended) {
            close_connection(std::move(ended->fd));
            delete ended;
          }};
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

struct HandoffServer::State final : UnixListener::Events, std::enable_shared_from_this<State> {
  State(asio::io_context& io, Options wanted, Counters& figures, HandoffServer::Events& reports)
      : control(io), options(std::move(wanted)), counters(figures), events(reports) {}

  void came_in(UniqueFd socket, Caller caller, Charge place) override;
  void turned_away(int socket, const Error& why) override;
  void wait_for_message(ClientId client);
  void read(ClientId client);
  void handle(ClientId client, const Datagram& datagram);
  Result<void> answer(ClientId client, Guest& guest, const Datagram& datagram);
  Result<void> welcome(ClientId client, Guest& guest);
  Result<void> give_ring(ClientId client, HandoffRing ring);
  void limit_patience(ClientId client, Guest& guest, std::chrono::milliseconds limit, std::string why);
  void wait_for_session(ClientId client, Guest& guest);
  Guest* find(ClientId client);
  std::optional<Departure> end(ClientId client);  // nullopt: it had not been welcomed
  void end_and_report(ClientId client);           // likewise, to Events

  asio::io_context& control;
  const Options options;
  Counters& counters;
  HandoffServer::Events& events;
  std::unique_ptr<UnixListener> listener;
  std::map<ClientId, std::unique_ptr<Guest>> guests;
  std::uint64_t next_client = 1;
};

// ---- coming ----

void HandoffServer::State::turned_away(int socket, const Error& why) {
  counters.add(MetricId::requests_refused, code_name(why.code));
  static_cast<void>(send_reply(socket, refused_reply(why)));
}

void HandoffServer::State::came_in(UniqueFd socket, Caller caller, Charge place) {
  const ClientId client{next_client++};
  const int descriptor = socket.get();
  caller.connection = shared_connection(std::move(socket));
  auto guest = std::make_unique<Guest>(control, std::make_shared<const Caller>(std::move(caller)), std::move(place));
  boost::system::error_code failed;
  guest->socket.assign(descriptor, failed);
  // The kernel has no room to watch it; closing says that as well as anything.
  if (failed) return end_connection(descriptor);
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
  counters.add(MetricId::requests_refused, code_name(answered.error().code));
  if (Guest* const still = find(client))
    static_cast<void>(send_reply(still->socket.native_handle(), refused_reply(answered.error())));
  end_and_report(client);
}

// An error ends the connection.
Result<void> HandoffServer::State::answer(ClientId client, Guest& guest, const Datagram& datagram) {
  if (datagram.with_descriptors) {
    listener->ban(guest.caller->uid, UnixListener::kSentDescriptor);
    return Error{Code::kInvalid, "hand-off: a message with a descriptor; the daemon takes none from its clients"};
  }
  MILLRACE_TRY(const HandoffMessage message, parse_handoff(datagram.bytes));
  if (std::holds_alternative<HandoffHello>(message)) {
    if (guest.phase != Phase::kAccepted) return Error{Code::kInvalid, "hand-off: a second Hello"};
    return welcome(client, guest);
  }
  if (std::holds_alternative<HandoffGoodbye>(message)) {
    guest.said_goodbye = true;
    return {};
  }
  if (std::holds_alternative<HandoffLetGo>(message)) {
    guest.let_go = true;
    return {};
  }
  if (guest.phase != Phase::kSeated) return Error{Code::kInvalid, "hand-off: a RingRequest before the session is open"};
  return give_ring(client, std::get<HandoffRing>(message));
}

Result<void> HandoffServer::State::welcome(ClientId client, Guest& guest) {
  MILLRACE_TRY(guest.ticket, new_ticket());
  MILLRACE_TRY_VOID(send_reply(guest.socket.native_handle(), welcome_reply(guest.ticket)));
  wait_for_session(client, guest);
  return {};
}

void HandoffServer::State::wait_for_session(ClientId client, Guest& guest) {
  guest.phase = Phase::kWelcomed;
  limit_patience(client, guest, options.session_within, "no session was opened in time");
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

std::optional<HandoffServer::Departure> HandoffServer::State::end(ClientId client) {
  const auto entry = guests.extract(client);
  if (entry.empty()) return std::nullopt;
  Guest& guest = *entry.mapped();
  end_connection(guest.socket.release());  // the caller's alone from here on
  counters.subtract(MetricId::handoff_connections);
  if (guest.phase == Phase::kAccepted) return std::nullopt;
  if (!guest.said_goodbye) return Departure::kGone;
  return guest.let_go ? Departure::kLetGo : Departure::kGoodbye;
}

void HandoffServer::State::end_and_report(ClientId client) {
  if (const std::optional<Departure> how = end(client)) events.disconnected(client, *how);
}

// ---- the server ----

Result<std::unique_ptr<HandoffServer>> HandoffServer::create(asio::io_context& control, Ledger& ledger, Options options,
                                                             Counters& counters, Events& events) {
  UnixListener::Options listening{.path = options.path,
                                  .type = SocketType::kSeqPacket,
                                  .name = "hand-off",
                                  .connections = Resource::kHandoffConnections,
                                  .admins = options.admins,
                                  .passed = options.passed};
  auto state = std::make_shared<State>(control, std::move(options), counters, events);
  MILLRACE_TRY(state->listener, UnixListener::create(control, ledger, std::move(listening), *state));
  return std::unique_ptr<HandoffServer>(new HandoffServer(std::move(state)));
}

HandoffServer::HandoffServer(std::shared_ptr<State> state) : state_(std::move(state)) {}

HandoffServer::~HandoffServer() {
  while (!state_->guests.empty()) state_->end(state_->guests.begin()->first);
}

void HandoffServer::leave_waiting() {
  state_->listener->leave_waiting();
}

std::optional<HandoffServer::Connection> HandoffServer::find(const Ticket& ticket_untrusted) const {
  for (const auto& [id, guest] : state_->guests) {
    if (guest->phase != Phase::kAccepted && same(guest->ticket, ticket_untrusted)) return Connection{id, guest->caller};
  }
  return std::nullopt;
}

void HandoffServer::opening(ClientId client) {
  Guest* const guest = state_->find(client);
  if (guest == nullptr || guest->phase != Phase::kWelcomed) return;
  guest->phase = Phase::kOpening;
  guest->patience.cancel();
}

void HandoffServer::not_opened(ClientId client) {
  Guest* const guest = state_->find(client);
  if (guest != nullptr && guest->phase == Phase::kOpening) state_->wait_for_session(client, *guest);
}

void HandoffServer::expel(ClientId client) {
  Guest* const guest = state_->find(client);
  if (guest == nullptr) return;
  state_->listener->ban(guest->caller->uid, UnixListener::kSentDescriptor);
  ::shutdown(guest->socket.native_handle(), SHUT_RDWR);  // the event loop finds its end and reports it
}

void HandoffServer::dismiss(ClientId client) {
  static_cast<void>(state_->end(client));
}

Result<UniqueFd> HandoffServer::send_segment(ClientId client, int read_only_fd, Bytes size) {
  Guest* const guest = state_->find(client);
  if (guest == nullptr) return Error{Code::kUnavailable, "hand-off: the client is gone"};
  MILLRACE_CHECK(guest->phase == Phase::kWelcomed || guest->phase == Phase::kOpening);
  guest->phase = Phase::kSeated;
  guest->patience.cancel();
  MILLRACE_TRY(ReplyPair replies, make_reply_pair());
  const std::array<int, 2> descriptors{read_only_fd, replies.clients.get()};
  const Result<void> sent = send_reply(guest->socket.native_handle(), segment_reply(size), descriptors);
  if (sent) return std::move(replies.ours);
  ::shutdown(guest->socket.native_handle(), SHUT_RDWR);  // the event loop finds its end and reports it
  return sent.error();
}

Result<void> HandoffServer::send_memory(ClientId client, int fd, Bytes size, const DeviceUuid& device) {
  Guest* const guest = state_->find(client);
  if (guest == nullptr) return Error{Code::kUnavailable, "hand-off: the client is gone"};
  const Result<void> sent = send_reply(guest->socket.native_handle(), memory_reply(size, device), std::array{fd});
  if (!sent) ::shutdown(guest->socket.native_handle(), SHUT_RDWR);  // the event loop finds its end and reports it
  return sent;
}

}  // namespace millrace
