#include "daemon/door/unix_listener.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "daemon/door/peer.h"
#include "daemon/door/sleep_breaker.h"
#include "daemon/door/socket_path.h"
#include "daemon/observe/bounded_log.h"
#include "daemon/observe/log.h"

namespace millrace {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

constexpr int kBacklog = 4096;  // the kernel takes no more than net.core.somaxconn
constexpr mode_t kMode = 0660;
constexpr int kAcceptedAtOnce = 16;               // then it is somebody else's turn on the control thread
constexpr std::chrono::milliseconds kPause{100};  // until accept() is tried again when descriptors are short
constexpr std::chrono::minutes kBan{1};
// Of those turned away: when they are told why, how long they may go on talking, and how many of them at most.
constexpr std::chrono::milliseconds kToldAfter{50}, kHeardFor{1'000}, kBetweenLooks{50};

bool short_of_descriptors(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

bool was_passed(const UnixListener::Options& options) {
  return options.passed != nullptr && !options.passed->none();
}

Result<UniqueFd> listen_on(const UnixListener::Options& options) {
  const std::string& path = options.path;
  MILLRACE_TRY_VOID(claim_socket_path(path));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Error{Code::kInvalid, path + ": too long for a socket's path"};
  std::memcpy(address.sun_path, path.data(), path.size());

  const int type = options.type == SocketType::kStream ? SOCK_STREAM : SOCK_SEQPACKET;
  UniqueFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return errno_error("making the socket " + path, errno);
  refuse_descriptors(socket.get());  // connections inherit it
  // Before bind(), so that the file never has more rights than these; after it, because the umask may have left fewer.
  if (::fchmod(socket.get(), kMode) != 0) return errno_error("setting the mode of the socket " + path, errno);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    Error error = errno_error("cannot listen on " + path, errno);
    error.message += ": check that its folder is there and the daemon may write to it (daemon.socket says where)";
    return error;
  }
  if (::chmod(path.c_str(), kMode) != 0) return errno_error("setting the mode of " + path, errno);
  if (::listen(socket.get(), kBacklog) != 0) return errno_error("listening on " + path, errno);
  return socket;
}

}  // namespace

struct UnixListener::State : std::enable_shared_from_this<State> {
  State(asio::io_context& io, Ledger& bounds, Options wanted, Events& reports)
      : ledger(bounds), options(std::move(wanted)), events(reports), listener(io), pause(io), next_look(io) {}
  ~State() {
    for (TurnedAway& client : turned_away) hang_up(std::move(client.socket));
  }

  struct TurnedAway {
    UniqueFd socket;
    Error why;
    Clock::time_point since;
    bool told = false;
  };

  Result<void> watch(UniqueFd socket);
  void wait_for_client();
  void accept_some();
  void accept_later();
  bool has_room() const;
  bool accept_one();
  void let_in_or_turn_away(UniqueFd socket);
  Result<Charge> place_for(const Caller& caller);
  void turn_away(UniqueFd socket, Error why);
  void drop(UniqueFd socket, std::optional<uid_t> user);
  void ban(uid_t user, std::string_view deed);
  void look_after_turned_away();
  void tell(TurnedAway& client);
  void let_go_of_first();
  Result<void> check_ban(const Caller& caller) const;

  Ledger& ledger;
  const Options options;
  Events& events;
  asio::posix::stream_descriptor listener;
  asio::steady_timer pause;
  struct Ban {
    Clock::time_point until{};
    std::string_view deed;
  };
  std::map<uid_t, Ban> banned;
  std::deque<TurnedAway> turned_away;  // the last ones
  asio::steady_timer next_look;        // at them
  int listener_descriptor = -1;
  SeldomLineByUser no_room;
  SeldomLine no_descriptors;
  bool passed = false, leaves_waiting = false;
  dev_t device = 0;  // of the socket file
  ino_t inode = 0;
};

Result<void> UnixListener::State::watch(UniqueFd socket) {
  struct stat status {};
  if (!passed && ::lstat(options.path.c_str(), &status) != 0) return errno_error("looking at " + options.path, errno);
  device = status.st_dev;
  inode = status.st_ino;
  boost::system::error_code failed;
  listener.assign(socket.get(), failed);
  if (failed) return errno_error("watching the socket " + options.path, failed.value());
  listener_descriptor = socket.release();  // the listener's from here on
  wait_for_client();
  return {};
}

void UnixListener::State::wait_for_client() {
  if (leaves_waiting) return;
  listener.async_wait(asio::posix::stream_descriptor::wait_read,
                      [weak = weak_from_this()](const boost::system::error_code& error) {
                        const auto self = weak.lock();
                        if (self && !error) self->accept_some();
                      });
}

void UnixListener::State::accept_some() {
  for (int i = 0; i < kAcceptedAtOnce && !leaves_waiting; ++i) {
    if (accept_one()) continue;
    if (short_of_descriptors(errno)) return accept_later();
    break;
  }
  wait_for_client();
}

// The socket stays readable, so waiting for it would spin.
void UnixListener::State::accept_later() {
  while (!turned_away.empty()) let_go_of_first();
  no_descriptors.warn(options.name +
                      ": the daemon is short of descriptors: new connections wait; raise its limit "
                      "(LimitNOFILE= in the unit, or ulimit -n)");
  pause.expires_after(kPause);
  pause.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (self && !error) self->accept_some();
  });
}

// Before a connection is taken, for none is thrown away. The kernel gives the lowest descriptor that is free. false:
// errno says why.
bool UnixListener::State::has_room() const {
  if (options.highest_descriptor.now() == std::numeric_limits<int>::max()) return true;
  const UniqueFd lowest(::fcntl(listener_descriptor, F_DUPFD_CLOEXEC, 0));
  if (!lowest) return false;
  if (lowest.get() <= options.highest_descriptor.now()) return true;
  errno = EMFILE;
  return false;
}

// false: errno says why.
bool UnixListener::State::accept_one() {
  if (!has_room()) return false;
  UniqueFd socket(::accept4(listener.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) return errno == EINTR || errno == ECONNABORTED;
  let_in_or_turn_away(std::move(socket));
  return true;
}

void UnixListener::State::let_in_or_turn_away(UniqueFd socket) {
  const bool brought = brought_descriptors(socket.get());
  Result<Caller> caller = caller_of(socket.get());
  if (brought) return drop(std::move(socket), caller ? std::optional(caller->uid) : std::nullopt);
  if (!caller) return turn_away(std::move(socket), std::move(caller).error());
  const auto refuse = [&](const Error& why) {
    no_room.warn(caller->uid, why.message);
    turn_away(std::move(socket), why);
  };
  if (const Result<void> welcome = check_ban(*caller); !welcome) return refuse(welcome.error());
  Result<Charge> place = place_for(*caller);
  if (!place) return refuse(place.error());
  events.came_in(std::move(socket), *std::move(caller), *std::move(place));
}

Result<Charge> UnixListener::State::place_for(const Caller& caller) {
  const std::shared_ptr<Account> account = ledger.account(Owner{.user = caller.user()});
  Result<Charge> place = account->charge(options.connections, 1);
  if (place || !options.admins) return place;
  const auto is_kept = [](std::uint64_t bound, std::uint64_t in_use) {
    return in_use < bound || in_use - bound < kKept;
  };
  const Bounds bounds = ledger.bounds(options.connections);
  const bool kept = is_kept(bounds.total, ledger.in_use(options.connections)) &&
                    is_kept(bounds.user, account->in_use(options.connections, Bound::kUser));
  if (!kept || !options.admins->now().include(caller)) return place;
  return account->take(options.connections, 1);
}

// What it brought is closed with it, which must not take long.
void UnixListener::State::drop(UniqueFd socket, std::optional<uid_t> user) {
  if (user) ban(*user, kSentDescriptor);
  const ShortSleeps guard;
  socket.reset();
}

// A client that writes to a connection which is closed has an error of that, and may not read any more what it was
// told: gRPC does not. So it may write into the void for a while. And gRPC connects again as soon as it was told, so it
// is told late.
void UnixListener::State::turn_away(UniqueFd socket, Error why) {
  turned_away.push_back({std::move(socket), std::move(why), Clock::now()});
  if (turned_away.size() > kMostTurnedAway) let_go_of_first();
  if (turned_away.size() == 1) look_after_turned_away();
}

void UnixListener::State::look_after_turned_away() {
  const Clock::time_point now = Clock::now();
  while (!turned_away.empty() && now - turned_away.front().since >= kHeardFor) let_go_of_first();
  for (TurnedAway& client : turned_away) {
    if (now - client.since < kToldAfter) break;  // they stand in the order in which they came
    tell(client);
  }
  if (turned_away.empty()) return;
  next_look.expires_after(kBetweenLooks);
  next_look.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (self && !error) self->look_after_turned_away();
  });
}

void UnixListener::State::tell(TurnedAway& client) {
  if (std::exchange(client.told, true)) return;
  events.turned_away(client.socket.get(), client.why);
  ::shutdown(client.socket.get(), SHUT_WR);
}

void UnixListener::State::let_go_of_first() {
  tell(turned_away.front());
  hang_up(std::move(turned_away.front().socket));
  turned_away.pop_front();
}

Result<void> UnixListener::State::check_ban(const Caller& caller) const {
  const auto ban = banned.find(caller.uid);
  if (ban == banned.end() || Clock::now() >= ban->second.until) return {};
  return Error{Code::kDenied, options.name + ": user " + std::to_string(caller.uid) + " " +
                                  std::string(ban->second.deed) + ": connect again in a minute"};
}

Result<std::unique_ptr<UnixListener>> UnixListener::create(asio::io_context& control, Ledger& ledger, Options options,
                                                           Events& events) {
  const bool passed = was_passed(options);
  MILLRACE_TRY(UniqueFd socket, passed ? options.passed->take(options.path, options.type) : listen_on(options));
  if (passed) refuse_descriptors(socket.get());
  options.passed = nullptr;
  auto state = std::make_shared<State>(control, ledger, std::move(options), events);
  state->passed = passed;
  MILLRACE_TRY_VOID(state->watch(std::move(socket)));
  return std::unique_ptr<UnixListener>(new UnixListener(std::move(state)));
}

UnixListener::~UnixListener() {
  if (state_->passed) return;
  struct stat status {};
  const std::string& path = state_->options.path;
  if (::lstat(path.c_str(), &status) == 0 && status.st_dev == state_->device && status.st_ino == state_->inode)
    ::unlink(path.c_str());
}

void UnixListener::leave_waiting() {
  state_->leaves_waiting = state_->passed;
  if (!state_->passed) return;
  boost::system::error_code ignored;
  state_->listener.cancel(ignored);
  state_->pause.cancel(ignored);
}

void UnixListener::ban(uid_t user, std::string_view deed) {
  state_->ban(user, deed);
}

void UnixListener::State::ban(uid_t user, std::string_view deed) {
  const Clock::time_point now = Clock::now();
  Ban& ban = banned[user];
  if (ban.until <= now)
    log_warning(options.name + ": user " + std::to_string(user) + " " + std::string(deed) +
                ", and is not let in for a minute");
  ban = {now + kBan, deed};
}

}  // namespace millrace
