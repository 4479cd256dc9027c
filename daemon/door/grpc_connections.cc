#include "daemon/door/grpc_connections.h"

#include <pthread.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <future>
#include <map>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/door/frame_meter.h"
#include "daemon/door/grpc_relay.h"
#include "daemon/door/peer.h"
#include "daemon/door/unix_listener.h"
#include "daemon/observe/bounded_log.h"
#include "daemon/observe/log.h"
#include "proto/base/mutex.h"

namespace millrace {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kCutsCount{60};
constexpr std::ptrdiff_t kMostCuts = 3;
constexpr std::string_view kBeganCalls = "began thousands of calls within seconds";
constexpr std::string_view kSentFrames = "sent HTTP/2 frames beyond what a call needs";

std::string user_text(UserId user) {
  return "user " + std::to_string(raw(user));
}

}  // namespace

struct GrpcConnections::State final : UnixListener::Events {
  State(Ledger& bounds, std::function<void(int)> take) : ledger(bounds), hand_over(std::move(take)) {}
  ~State() override {
    io.stop();
    if (thread.joinable()) thread.join();
  }

  Result<void> begin(const Options& options);
  void came_in(UniqueFd socket, Caller caller, Charge place) override;
  void turned_away(int socket, const Error& why) override;
  std::shared_ptr<HeldByUser> held_by(UserId user);
  GrpcRelay::Reports reports_of(std::uint64_t id, UserId user);
  void ended(std::uint64_t id);
  void refused(UserId user, const Error& why);
  void expel(UserId user, std::string_view deed);
  bool cut_too_often(UserId user);
  void cut_off(int given, UserId user);

  // Has `work` done on the thread here, and waits for it. REQUIRES: begin() has succeeded.
  template <class Work>
  void do_there(Work work) {
    std::promise<void> done;
    asio::post(io, [&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  struct Open {
    std::shared_ptr<GrpcRelay> relay;
    UserId user;
    int given;  // the descriptor that gRPC has
    Charge place;
  };
  struct Given {
    std::uint64_t id;
    UserId user;
  };
  struct Cut {
    UserId user;
    Clock::time_point at;
  };

  Ledger& ledger;
  const std::function<void(int)> hand_over;
  asio::io_context io{1};
  const asio::executor_work_guard<asio::io_context::executor_type> stays{io.get_executor()};
  FrameMeter meter;
  GrpcRelay::Buffer buffer;
  std::unique_ptr<UnixListener> listener;
  std::map<std::uint64_t, Open> open;
  std::map<UserId, std::weak_ptr<HeldByUser>> held;  // of users who are connected
  std::vector<Cut> cuts;                             // of the last minute
  SeldomLineByUser refusals;
  std::uint64_t next_id = 1;
  asio::steady_timer last{io};  // when connections that are still there are cut off
  std::promise<void> all_ended;
  bool somebody_waits_for_ends = false;

  Mutex mutex;
  std::map<int, Given> given MILLRACE_GUARDED_BY(mutex);  // by gRPC's descriptor
  std::thread thread;
};

Result<void> GrpcConnections::State::begin(const Options& options) {
  MILLRACE_TRY(listener, UnixListener::create(io, ledger,
                                              {.path = options.path,
                                               .type = SocketType::kStream,
                                               .name = "gRPC",
                                               .connections = Resource::kGrpcConnections,
                                               .highest_descriptor = options.highest_descriptor,
                                               .admins = options.admins,
                                               .passed = options.passed},
                                              *this));
  thread = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "mr-door");
    io.run();
  });
  return {};
}

void GrpcConnections::State::came_in(UniqueFd socket, Caller caller, Charge place) {
  const std::uint64_t id = next_id++;
  const UserId user = caller.user();
  Result<GrpcRelay::Made> made = GrpcRelay::create({.io = io, .meter = meter, .buffer = buffer}, std::move(socket),
                                                   held_by(user), reports_of(id, user));
  if (!made) return log_warning("gRPC: a connection of " + user_text(user) + " is closed: " + made.error().message);
  const int fd = made->grpc.release();
  {
    MutexLock lock(mutex);
    given[fd] = {id, user};
  }
  made->relay->begin();
  open.emplace(id, Open{std::move(made->relay), user, fd, std::move(place)});
  hand_over(fd);
}

std::shared_ptr<HeldByUser> GrpcConnections::State::held_by(UserId user) {
  std::erase_if(held, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<HeldByUser>& known = held[user];
  std::shared_ptr<HeldByUser> shared = known.lock();
  if (!shared) known = shared = std::make_shared<HeldByUser>(ledger.account({.user = user}));
  return shared;
}

GrpcRelay::Reports GrpcConnections::State::reports_of(std::uint64_t id, UserId user) {
  return {.ended = [this, id] { ended(id); },
          .refused = [this, user](const Error& why) { refused(user, why); },
          .sent_descriptor = [this, user] { expel(user, UnixListener::kSentDescriptor); }};
}

void GrpcConnections::State::turned_away(int socket, const Error& why) {
  const std::string frames = goaway(why.message, true);
  static_cast<void>(::send(socket, frames.data(), frames.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
}

// gRPC has closed its descriptor, whose number may be another connection's by now.
void GrpcConnections::State::ended(std::uint64_t id) {
  const auto gone = open.extract(id);
  if (gone.empty()) return;
  {
    MutexLock lock(mutex);
    const auto was = given.find(gone.mapped().given);
    if (was != given.end() && was->second.id == id) given.erase(was);
  }
  if (somebody_waits_for_ends && open.empty()) all_ended.set_value();
}

// Where there is no room for what he sends, or it is merely nothing that is taken, he has done no wrong.
void GrpcConnections::State::refused(UserId user, const Error& why) {
  refusals.warn(raw(user), "gRPC: a connection of " + user_text(user) + " is cut off: " + why.message);
  if (why.code == Code::kInvalid && cut_too_often(user)) expel(user, kSentFrames);
}

void GrpcConnections::State::expel(UserId user, std::string_view deed) {
  if (listener) listener->ban(raw(user), deed);
  for (const auto& [id, connection] : open) {
    if (connection.user == user) connection.relay->cut_off();
  }
}

bool GrpcConnections::State::cut_too_often(UserId user) {
  const auto now = Clock::now();
  std::erase_if(cuts, [now](const Cut& cut) { return now - cut.at > kCutsCount; });
  cuts.push_back({user, now});
  return std::ranges::count(cuts, user, &Cut::user) >= kMostCuts;
}

void GrpcConnections::State::cut_off(int from, UserId user) {
  if (cut_too_often(user)) return expel(user, kBeganCalls);
  log_warning("gRPC: " + user_text(user) + " " + std::string(kBeganCalls) + "; a connection of his is cut off");
  std::uint64_t id = 0;
  {
    MutexLock lock(mutex);
    const auto known = given.find(from);
    if (known != given.end() && known->second.user == user) id = known->second.id;
  }
  const auto connection = open.find(id);
  if (connection != open.end()) connection->second.relay->cut_off();
}

Result<std::unique_ptr<GrpcConnections>> GrpcConnections::create(Ledger& ledger, Options options,
                                                                 std::function<void(int fd)> hand_over) {
  auto state = std::make_unique<State>(ledger, std::move(hand_over));
  MILLRACE_TRY_VOID(state->begin(options));
  return std::unique_ptr<GrpcConnections>(new GrpcConnections(std::move(state)));
}

GrpcConnections::GrpcConnections(std::unique_ptr<State> state) : state_(std::move(state)) {}

GrpcConnections::~GrpcConnections() {
  stop();
}

std::optional<UserId> GrpcConnections::user_of(int given) const {
  MutexLock lock(state_->mutex);
  const auto known = state_->given.find(given);
  return known == state_->given.end() ? std::nullopt : std::optional(known->second.user);
}

void GrpcConnections::expel_user_of(int socket) {
  const std::optional<uid_t> user = millrace::user_of(socket);
  if (!user) return;  // the descriptor is something else by now
  asio::post(state_->io,
             [state = state_.get(), user = UserId{*user}] { state->expel(user, UnixListener::kSentDescriptor); });
}

void GrpcConnections::cut_off(int given, UserId user) {
  asio::post(state_->io, [state = state_.get(), given, user] { state->cut_off(given, user); });
}

void GrpcConnections::leave_waiting() {
  asio::post(state_->io, [state = state_.get()] {
    if (state->listener) state->listener->leave_waiting();
  });
}

void GrpcConnections::stop() {
  state_->do_there([this] { state_->listener.reset(); });
}

void GrpcConnections::cut_off_all_at(std::chrono::system_clock::time_point deadline) {
  asio::post(state_->io, [state = state_.get(), deadline] {
    state->last.expires_after(deadline - std::chrono::system_clock::now());
    state->last.async_wait([state](const boost::system::error_code& error) {
      if (error) return;
      for (const auto& [id, connection] : state->open) connection.relay->cut_off();
    });
  });
}

void GrpcConnections::wait_for_ends(Clock::time_point deadline) {
  std::future<void> ended = state_->all_ended.get_future();
  state_->do_there([this] {
    if (state_->open.empty()) return state_->all_ended.set_value();
    state_->somebody_waits_for_ends = true;
  });
  static_cast<void>(ended.wait_until(deadline));
}

}  // namespace millrace
