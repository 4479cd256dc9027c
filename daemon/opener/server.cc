#include "daemon/opener/server.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <map>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "daemon/door/peer.h"
#include "daemon/observe/bounded_log.h"
#include "daemon/opener/connection.h"

namespace millrace {
namespace {

// What an epoll event is about; every other number is a caller's (callers.h).
constexpr std::uint64_t kListener = 1, kSignal = 2, kConnectionEnded = 3;

constexpr int kPause = 100;  // ms, between attempts to accept where there is no room for it

// Half of the descriptors are for clients, the others for connections, and what these have open.
std::size_t most_callers() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 256;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
  return std::min<rlim_t>(limit.rlim_cur / 2, 1U << 17U);
}

}  // namespace

struct OpenerServer::State {
  State(UniqueFd listens, Options wanted)
      : listener(std::move(listens)),
        options(std::move(wanted)),
        events(::epoll_create1(EPOLL_CLOEXEC)),
        ended(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        callers(events.get(), most_callers()),
        roots(options.roots, options.read_roots) {}

  struct Running {
    std::unique_ptr<OpenerConnection> connection;
    std::thread thread;
    std::atomic<bool> done{false};
  };

  Result<void> watch(int fd, std::uint64_t about) const;
  void accept_one();
  void pause_unless_passing(int error_number);
  void accept_again();
  void let_in(UniqueFd socket);
  void join_ended();

  UniqueFd listener;
  const Options options;
  const UniqueFd events, ended;
  UniqueFd signals;
  Callers callers;
  ServedRoots roots;
  KerberosMounts kerberos;
  Suspicion suspicion;
  std::map<std::uint64_t, Running> running;
  std::uint64_t next = 1;
  SeldomLine strangers, too_many, no_room;
  bool paused = false;  // accepting, for a moment
};

Result<void> OpenerServer::State::watch(int fd, std::uint64_t about) const {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = about;
  if (::epoll_ctl(events.get(), EPOLL_CTL_ADD, fd, &event) != 0) return errno_error("watching a socket", errno);
  return {};
}

void OpenerServer::State::accept_one() {
  UniqueFd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) return pause_unless_passing(errno);
  const Result<Caller> daemon = caller_of(socket.get());
  const bool welcome = daemon && (!options.daemon || daemon->uid == *options.daemon);
  if (!welcome) return strangers.warn("a user who is not the daemon's connected, and was turned away");
  if (running.size() >= options.connections)
    return too_many.warn("the daemon has " + std::to_string(running.size()) + " connections, and gets no more");
  let_in(std::move(socket));
}

// For want of descriptors or memory the listener would be ready at once again.
void OpenerServer::State::pause_unless_passing(int error_number) {
  if (error_number != EMFILE && error_number != ENFILE && error_number != ENOMEM && error_number != ENOBUFS) return;
  no_room.warn(errno_error("the daemon's connections have to wait: accepting one", error_number).message);
  static_cast<void>(::epoll_ctl(events.get(), EPOLL_CTL_DEL, listener.get(), nullptr));
  paused = true;
}

void OpenerServer::State::accept_again() {
  if (std::exchange(paused, false) && !watch(listener.get(), kListener)) paused = true;
}

void OpenerServer::State::let_in(UniqueFd socket) {
  const std::uint64_t number = next++;
  Running& one = running[number];
  one.connection = std::make_unique<OpenerConnection>(
      OpenerConnection::Shared{
          .rules = options.rules, .roots = roots, .callers = callers, .kerberos = kerberos, .suspicion = suspicion},
      ConnectionNumber{number}, std::move(socket));
  try {
    one.thread = std::thread([this, &one] {
      one.connection->serve();
      one.done.store(true, std::memory_order_release);
      const std::uint64_t once = 1;
      static_cast<void>(::write(ended.get(), &once, sizeof once));
    });
  } catch (const std::system_error& failed) {
    no_room.warn(std::string("a connection of the daemon's is closed: no thread for it: ") + failed.what());
    running.erase(number);
    return;
  }
  pthread_setname_np(one.thread.native_handle(), ("mr-open-" + std::to_string(number % 1'000'000)).c_str());
}

void OpenerServer::State::join_ended() {
  std::uint64_t count = 0;
  static_cast<void>(::read(ended.get(), &count, sizeof count));
  for (auto one = running.begin(); one != running.end();) {
    if (!one->second.done.load(std::memory_order_acquire)) {
      ++one;
      continue;
    }
    one->second.thread.join();
    callers.forget_all_of(ConnectionNumber{one->first});
    one = running.erase(one);
  }
}

Result<std::unique_ptr<OpenerServer>> OpenerServer::create(UniqueFd listener, Options options) {
  auto state = std::make_unique<State>(std::move(listener), std::move(options));
  sigset_t ends{};
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGTERM);
  ::sigaddset(&ends, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  state->signals.reset(::signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK));
  const int flags = ::fcntl(state->listener.get(), F_GETFL);
  if (flags < 0 || ::fcntl(state->listener.get(), F_SETFL, flags | O_NONBLOCK) != 0)
    return errno_error("preparing the listening socket", errno);
  MILLRACE_TRY_VOID(state->watch(state->listener.get(), kListener));
  MILLRACE_TRY_VOID(state->watch(state->signals.get(), kSignal));
  MILLRACE_TRY_VOID(state->watch(state->ended.get(), kConnectionEnded));
  return std::unique_ptr<OpenerServer>(new OpenerServer(std::move(state)));
}

OpenerServer::OpenerServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

OpenerServer::~OpenerServer() {
  for (auto& [number, one] : state_->running) one.connection->end();
  for (auto& [number, one] : state_->running) one.thread.join();
}

void OpenerServer::run() {
  std::array<epoll_event, 64> found{};
  while (true) {
    const int patience = state_->paused ? kPause : -1;
    const int count = ::epoll_wait(state_->events.get(), found.data(), static_cast<int>(found.size()), patience);
    state_->accept_again();
    for (int i = 0; i < count; ++i) {
      const std::uint64_t about = found[static_cast<std::size_t>(i)].data.u64;
      if (about == kSignal) return;
      if (about == kListener) {
        state_->accept_one();
      } else if (about == kConnectionEnded) {
        state_->join_ended();
      } else {
        state_->callers.forget(OpenerCaller{about});
      }
    }
  }
}

}  // namespace millrace
