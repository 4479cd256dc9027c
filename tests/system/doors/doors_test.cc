// What one member of the group can do to the others through the two sockets: nothing that lasts.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "proto/base/sockets/socket_message.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/lingering_socket.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/support/under_sanitizer.h"
#include "tests/system/support/need.h"
#include "tests/system/support/operator.h"
#include "tests/system/support/raw_mill.h"
#include "tests/system/support/raw_session.h"

namespace millrace {
namespace {

constexpr int kPassRights = 83;  // SO_PASSRIGHTS
constexpr uid_t kDoorStranger = 65'532, kDoorOther = 65'531;

bool kernel_refuses_descriptors() {
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int off = 0;
  return ::setsockopt(probe.get(), SOL_SOCKET, kPassRights, &off, sizeof off) == 0;
}

UniqueFd connect_to(const std::string& path, int type) {
  UniqueFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) socket.reset();
  return socket;
}

// A session from its beginning to a batch in its client's hand: everything that needs the daemon's threads.
void round_trip(const RawMill& mill) {
  RawSession session(mill.daemon.socket(), {});
  session.send(mill.submit(1));
  REQUIRE(session.receive().completed().batch_id() == 1);
}

// The daemon may open descriptors up to this number only, from now on.
void limit_descriptors(pid_t daemon, rlim_t limit) {
  rlimit now{};
  REQUIRE(::prlimit(daemon, RLIMIT_NOFILE, nullptr, &now) == 0);
  now.rlim_cur = limit;
  REQUIRE(::prlimit(daemon, RLIMIT_NOFILE, &now, nullptr) == 0);
}

// Sends descriptors whose close() sleeps to both sockets, and gives its own away. Whether every one was refused with
// EPERM.
bool send_lingering_descriptors(const std::string& grpc, std::vector<std::unique_ptr<LingeringSocket>>& lingering,
                                std::vector<UniqueFd>& connections) {
  const std::string preface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
  bool refused = true;
  // Its own closes may turn out to be the last ones: they are cut short.
  std::signal(SIGALRM, [](int) {});
  const itimerval soon{{0, 10'000}, {0, 10'000}};
  ::setitimer(ITIMER_REAL, &soon, nullptr);
  for (int i = 0; i < 8; ++i) {
    lingering.push_back(std::make_unique<LingeringSocket>());
    for (const bool handoff : {true, false}) {
      connections.push_back(connect_to(handoff ? grpc + ".handoff" : grpc, handoff ? SOCK_SEQPACKET : SOCK_STREAM));
      const int fd = lingering.back()->fd();
      const ssize_t sent = send_message(connections.back().get(), std::as_bytes(std::span(preface)), {&fd, 1});
      refused = refused && sent < 0 && errno == EPERM;
    }
    if (!refused) lingering.back()->release().reset();  // the daemon's reference is the last: closing that sleeps
  }
  return refused;
}

// A process of another user that does `act`, writes what it returned to the pipe, and stays until it is killed.
class Stranger {
 public:
  template <class Act>
  explicit Stranger(Act act, uid_t user = kDoorStranger) {
    REQUIRE(::pipe2(pipe_.data(), O_CLOEXEC) == 0);
    child_ = ::fork();
    if (child_ == 0) {
      if (::setuid(user) != 0) ::_exit(1);
      const char said = act();
      static_cast<void>(::write(pipe_[1], &said, 1) + 1);
      while (true) ::pause();
    }
    ::close(pipe_[1]);
    REQUIRE(child_ > 0);
  }
  ~Stranger() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    ::close(pipe_[0]);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  char said() const {
    char said = 0;
    REQUIRE(::read(pipe_[0], &said, 1) == 1);
    return said;
  }

 private:
  std::array<int, 2> pipe_{};
  pid_t child_ = -1;
};

TEST_CASE("descriptors whose close() sleeps, sent to either socket, hold up nobody else", "[system]") {
  if (!is_root()) return skip_loudly("descriptors sent by another user: only root can become one");
  const Daemon daemon({.for_all_users = true});
  std::vector<std::unique_ptr<LingeringSocket>> lingering;  // to the end: without its reader a socket does not linger
  std::vector<UniqueFd> connections;
  const Stranger stranger(
      [&] { return send_lingering_descriptors(daemon.socket(), lingering, connections) ? 'r' : 's'; });
  const bool refused = stranger.said() == 'r';

  Client client = daemon.connect();
  const auto session = client.open_session({.slots = 1, .slot_bytes = 1_MiB});

  CHECK(session);
  CHECK(client.ping());
  CHECK(refused == kernel_refuses_descriptors());
}

TEST_CASE("a daemon that runs out of descriptors accepts again when it has some", "[system]") {
  if (under_sanitizer()) return skip_loudly("a daemon without descriptors: a sanitizer needs some of its own");
  const RawMill mill;
  limit_descriptors(mill.daemon.pid(), 8);  // it has more than these open already
  const UniqueFd waiting = connect_to(mill.daemon.socket(), SOCK_STREAM);
  const UniqueFd also_waiting = connect_to(mill.daemon.socket() + ".handoff", SOCK_SEQPACKET);
  const auto times_said = [&](const std::string& name) {
    return mill.daemon.errors().find(name + ": the daemon is short of descriptors") != std::string::npos;
  };
  REQUIRE(eventually([&] { return times_said("gRPC") && times_said("hand-off"); }));

  limit_descriptors(mill.daemon.pid(), 2'000);

  round_trip(mill);
  CHECK(mill.daemon.running());
}

TEST_CASE("one user's flood of connections leaves room for the others", "[system]") {
  if (!is_root()) return skip_loudly("a flood by another user: only root can become one");
  const TempFolder folder;
  const Daemon daemon({.limits = "connections = 60\nconnections_per_user = 20\n", .for_all_users = true});
  const Stranger flood([&] {
    for (int i = 0; i < 300; ++i) static_cast<void>(connect_to(daemon.socket(), SOCK_STREAM).release());
    return 'x';
  });
  REQUIRE(flood.said() == 'x');

  Client client = daemon.connect();
  const auto pinged = client.ping();
  const auto session = client.open_session({.slots = 1, .slot_bytes = 1_MiB});

  CHECK(pinged);
  CHECK(session);
  CHECK(eventually([&] {
    return daemon.errors().find("gRPC: 20 connections of user " + std::to_string(kDoorStranger)) != std::string::npos;
  }));
}

TEST_CASE("users who together take every connection of both sockets keep no administrator out", "[system]") {
  if (!is_root()) return skip_loudly("floods by two other users: only root can become them");
  const Daemon daemon({.limits = "sessions = 8\nsessions_per_user = 8\nconnections = 20\nconnections_per_user = 10\n",
                       .for_all_users = true});
  const auto flood = [&] {
    for (int i = 0; i < 40; ++i) {
      static_cast<void>(connect_to(daemon.socket(), SOCK_STREAM).release());
      static_cast<void>(connect_to(daemon.socket() + ".handoff", SOCK_SEQPACKET).release());
    }
    return 'x';
  };
  const Stranger one(flood), other(flood, kDoorOther);
  REQUIRE(one.said() == 'x');
  REQUIRE(other.said() == 'x');

  const Ran pinged = run({"millrace", "ping", "--count", "1", "--socket", daemon.socket()});
  const Ran asked = admin(daemon, {"status"});

  CAPTURE(pinged.errors, asked.errors);
  CHECK(pinged.status == 0);
  CHECK(asked.status == 0);
  CHECK(logs(daemon, "gRPC: 20 connections are open"));
  CHECK(logs(daemon, "hand-off: 32 connections are open"));
}

TEST_CASE("a client for whose connection there is no room is told so in the daemon's words", "[system]") {
  const Daemon daemon({.limits = "connections_per_user = 2\n"});
  constexpr int kKept = 8;  // for administrators, of whom this user is one, for the daemon is his
  std::vector<UniqueFd> all;
  for (int i = 0; i < 2 + kKept; ++i) all.push_back(connect_to(daemon.socket(), SOCK_STREAM));

  // What it fails at first: connecting waits for the daemon's first words, and those may come before the last ones.
  const auto refusal = [&](const auto& use) {
    auto client = Client::connect(daemon.socket());
    return client ? use(*client).error() : client.error();
  };

  const Error pinged = refusal([](Client& client) { return client.ping(); });
  const Error opened = refusal([](Client& client) { return client.open_session({.slots = 1, .slot_bytes = 1_MiB}); });

  CHECK(pinged.code == Code::kExhausted);
  CHECK_THAT(pinged.message, Catch::Contains("no room for this connection: gRPC: 2 connections of user") &&
                                 Catch::Contains("raise limits.connections_per_user"));
  CHECK(opened.code == Code::kExhausted);
}

TEST_CASE("a daemon with too few descriptors for its settings says so and does not start", "[system]") {
  CHECK_THROWS_WITH(Daemon({.descriptors = 16}),
                    Catch::Contains("the daemon may have 16 descriptors") && Catch::Contains("LimitNOFILE="));
  CHECK_NOTHROW(Daemon({.limits = "sessions = 4\nconnections = 10\n", .descriptors = 400}).connect());
}

TEST_CASE(
    "calls that are cancelled as soon as they have begun end with their connections, and then their user stays out",
    "[system]") {
  if (!is_root()) return skip_loudly("calls that another user cancels (needs root, to be several users)");
  const TempFolder folder;
  ::chmod(folder.path().c_str(), 0755);
  write_file(folder / "a.jpg", make_jpeg({.pixels = make_pixels(80, 60, 3, 1)}));
  const Daemon daemon({.roots = {folder.path()}, .for_all_users = true});
  const Process steady = daemon.client("work", {folder / "a.jpg"}, kDoorOther);
  REQUIRE(steady.wait_for("done 1\n"));
  const std::string method = GENERATE("/millrace.v1.Sessions/Stream", "/millrace.v1.Statistics/Get",
                                      "/grpc.health.v1.Health/Check", "/no.such.Service/Method");
  CAPTURE(method);

  const Process flood = daemon.client("cancel_calls", {"method=" + method}, kDoorStranger);

  REQUIRE(flood.wait_for("turned away", std::chrono::minutes(2)));
  const std::string told = flood.output();
  CAPTURE(told);
  REQUIRE(told.find("cut off") != std::string::npos);
  REQUIRE(logs(daemon, "began thousands of calls within seconds; a connection of his is cut off"));
  REQUIRE(logs(daemon, "began thousands of calls within seconds, and is not let in for a minute"));
  const std::string before = steady.output();
  REQUIRE(eventually([&] { return steady.output().size() > before.size() + 100; }));
  REQUIRE(steady.running());
}

}  // namespace
}  // namespace millrace
