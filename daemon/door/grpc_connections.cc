#include "daemon/door/grpc_connections.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <map>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/door/peer.h"
#include "daemon/door/unix_listener.h"
#include "daemon/observe/log.h"

namespace millrace {
namespace {

namespace asio = boost::asio;

constexpr int kEndsAtOnce = 64;
constexpr std::chrono::seconds kCutsCount{60};
constexpr std::ptrdiff_t kMostCuts = 3;
constexpr std::string_view kBeganCalls = "began thousands of calls within seconds";
constexpr std::chrono::milliseconds kBetweenLooks{10};  // at descriptors that gRPC has still to close

void append_frame(std::string& out, std::uint8_t type, std::string_view payload) {
  const auto length = static_cast<std::uint32_t>(payload.size());
  for (const int shift : {16, 8, 0}) out += static_cast<char>(length >> shift);
  out += static_cast<char>(type);
  out.append(5, '\0');  // no flags, the connection's own stream
  out += payload;
}

// What an HTTP/2 server says to a client that it has no room for (RFC 9113, 6.8): ENHANCE_YOUR_CALM, and why.
std::string goaway(std::string_view why) {
  constexpr std::uint8_t kSettings = 4;
  constexpr std::uint8_t kGoaway = 7;
  std::string frames;
  append_frame(frames, kSettings, {});
  append_frame(frames, kGoaway, std::string("\0\0\0\0\0\0\0\x0b", 8) + std::string(why));
  return frames;
}

bool is_open(int descriptor, ino_t socket) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode) && status.st_ino == socket;
}

}  // namespace

struct GrpcConnections::State final : UnixListener::Events {
  explicit State(std::function<void(int)> take) : hand_over(std::move(take)), ends(io), next_look(io) {}
  ~State() override {
    io.stop();
    if (thread.joinable()) thread.join();
  }

  Result<void> begin(Ledger& ledger, const Options& options);
  void came_in(UniqueFd socket, Caller caller, Charge place) override;
  void turned_away(int socket, const Error& why) override;
  void wait_for_ends();
  void take_ends();
  void forget(std::uint64_t id);
  void wait_for_grpc();
  void expel(uid_t user, std::string_view deed);
  void cut_off(int socket, uid_t user);

  struct Open {
    UniqueFd watched;  // a duplicate
    uid_t user;
    int given;     // the descriptor that gRPC has
    ino_t socket;  // which tells it from what may get the same number later
    Charge place;
  };

  const std::function<void(int)> hand_over;
  asio::io_context io{1};
  // An epoll instance within the io_context's: the io_context itself would wake up for every byte that arrives.
  asio::posix::stream_descriptor ends;
  std::unique_ptr<UnixListener> listener;
  std::map<std::uint64_t, Open> open;
  std::vector<Open> ending;  // their other ends are gone, and gRPC's descriptors are still there
  struct Cut {
    uid_t user;
    std::chrono::steady_clock::time_point at;
  };
  std::vector<Cut> cuts;  // of the last minute
  asio::steady_timer next_look;
  std::uint64_t next_id = 1;
  std::thread thread;
};

Result<void> GrpcConnections::State::begin(Ledger& ledger, const Options& options) {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return errno_error("making an epoll instance", errno);
  boost::system::error_code failed;
  ends.assign(epoll.get(), failed);
  if (failed) return errno_error("watching an epoll instance", failed.value());
  static_cast<void>(epoll.release());
  MILLRACE_TRY(listener, UnixListener::create(io, ledger,
                                              {.path = options.path,
                                               .type = SocketType::kStream,
                                               .name = "gRPC",
                                               .connections = Resource::kGrpcConnections,
                                               .highest_descriptor = options.highest_descriptor,
                                               .admins = options.admins,
                                               .passed = options.passed},
                                              *this));
  wait_for_ends();
  thread = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "mr-door");
    io.run();
  });
  return {};
}

void GrpcConnections::State::came_in(UniqueFd socket, Caller caller, Charge place) {
  struct stat status {};
  ::fstat(socket.get(), &status);
  Open connection{UniqueFd(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0)), caller.uid, socket.get(), status.st_ino,
                  std::move(place)};
  epoll_event event{};
  event.events = EPOLLRDHUP | EPOLLONESHOT;
  const std::uint64_t id = next_id++;
  event.data.u64 = id;
  if (!connection.watched || ::epoll_ctl(ends.native_handle(), EPOLL_CTL_ADD, connection.watched.get(), &event) != 0)
    return hang_up(std::move(socket));
  open.emplace(id, std::move(connection));
  hand_over(socket.release());
}

void GrpcConnections::State::turned_away(int socket, const Error& why) {
  const std::string frames = goaway(why.message);
  static_cast<void>(::send(socket, frames.data(), frames.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
}

void GrpcConnections::State::wait_for_ends() {
  ends.async_wait(asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& error) {
    if (!error) take_ends();  // `this` outlives the thread that is here
  });
}

void GrpcConnections::State::take_ends() {
  std::array<epoll_event, kEndsAtOnce> events{};
  const int count = ::epoll_wait(ends.native_handle(), events.data(), kEndsAtOnce, 0);
  for (int i = 0; i < count; ++i) forget(events[static_cast<std::size_t>(i)].data.u64);
  wait_for_ends();
}

// gRPC sees the end as well, reads what came before it and closes its own descriptor, which may take a while. The
// connection counts until then.
void GrpcConnections::State::forget(std::uint64_t id) {
  const auto ended = open.extract(id);
  if (ended.empty()) return;
  Open& connection = ended.mapped();
  ::epoll_ctl(ends.native_handle(), EPOLL_CTL_DEL, connection.watched.get(), nullptr);
  close_connection(std::move(connection.watched));
  ending.push_back(std::move(connection));
  if (ending.size() == 1) wait_for_grpc();
}

void GrpcConnections::State::wait_for_grpc() {
  next_look.expires_after(kBetweenLooks);
  next_look.async_wait([this](const boost::system::error_code& error) {
    if (error) return;  // `this` outlives the thread that is here
    std::erase_if(ending, [](const Open& connection) { return !is_open(connection.given, connection.socket); });
    if (!ending.empty()) wait_for_grpc();
  });
}

void GrpcConnections::State::expel(uid_t user, std::string_view deed) {
  listener->ban(user, deed);
  for (const auto& [id, connection] : open) {
    if (connection.user == user) ::shutdown(connection.watched.get(), SHUT_RDWR);
  }
}

void GrpcConnections::State::cut_off(int socket, uid_t user) {
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(cuts, [now](const Cut& cut) { return now - cut.at > kCutsCount; });
  cuts.push_back({user, now});
  if (std::ranges::count(cuts, user, &Cut::user) >= kMostCuts) return expel(user, kBeganCalls);
  log_warning("gRPC: user " + std::to_string(user) + " " + std::string(kBeganCalls) +
              "; a connection of his is cut off");
  for (const auto& [id, connection] : open) {
    if (connection.given == socket && connection.user == user) ::shutdown(connection.watched.get(), SHUT_RDWR);
  }
}

Result<std::unique_ptr<GrpcConnections>> GrpcConnections::create(Ledger& ledger, Options options,
                                                                 std::function<void(int fd)> hand_over) {
  auto state = std::make_unique<State>(std::move(hand_over));
  MILLRACE_TRY_VOID(state->begin(ledger, options));
  return std::unique_ptr<GrpcConnections>(new GrpcConnections(std::move(state)));
}

GrpcConnections::GrpcConnections(std::unique_ptr<State> state) : state_(std::move(state)) {}
GrpcConnections::~GrpcConnections() = default;

void GrpcConnections::expel_user_of(int socket) {
  const std::optional<uid_t> user = user_of(socket);
  if (!user) return;  // the descriptor is something else by now
  asio::post(state_->io, [state = state_.get(), user = *user] { state->expel(user, UnixListener::kSentDescriptor); });
}

void GrpcConnections::cut_off(int socket, uid_t user) {
  asio::post(state_->io, [state = state_.get(), socket, user] { state->cut_off(socket, user); });
}

void GrpcConnections::leave_waiting() {
  asio::post(state_->io, [state = state_.get()] { state->listener->leave_waiting(); });
}

void GrpcConnections::stop() {
  state_.reset();
}

}  // namespace millrace
