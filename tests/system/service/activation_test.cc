// A daemon whose sockets a service manager holds: clients wait while there is none, and nothing of it is lost in a
// restart.
#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <future>
#include <list>

#include "millrace/client.h"
#include "proto/base/sockets/socket_message.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/lingering_socket.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/under_sanitizer.h"
#include "tests/system/service/passed_sockets.h"
#include "tests/system/support/command.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);

Result<Session> session_at(const std::string& path) {
  auto client = Client::connect(path, kPatience);
  if (!client) return client.error();
  return client->open_session({.slots = 1, .batch = 1, .recipe = Recipe::train(32), .timeout = kPatience});
}

Process started(const PassedSockets& sockets, const std::vector<std::string>& options = {}) {
  Process daemon = sockets.start(options);
  if (!daemon.wait_for("listening on")) throw std::runtime_error("the daemon does not listen: " + daemon.errors());
  return daemon;
}

TEST_CASE("a client that connects while no daemon runs is served once one starts", "[system]") {
  const PassedSockets sockets;
  auto session = std::async(std::launch::async, [&] { return session_at(sockets.path()); });
  const bool waited = session.wait_for(std::chrono::milliseconds(300)) == std::future_status::timeout;

  const Process daemon = sockets.start();
  const auto opened = session.get();

  CAPTURE(daemon.errors(), opened ? "" : opened.error().message);
  REQUIRE(waited);
  REQUIRE(opened);
}

TEST_CASE("a client that nobody comes for says that the daemon may be starting, and where to read why it does not",
          "[system]") {
  const PassedSockets sockets;

  const auto client = Client::connect(sockets.path(), std::chrono::milliseconds(200));

  REQUIRE_FALSE(client);
  REQUIRE(client.error().code == Code::kUnavailable);
  REQUIRE_THAT(client.error().message,
               Catch::Contains("may be starting again") && Catch::Contains("journalctl -u millraced"));
}

TEST_CASE("an order to a daemon that does not come up ends with the same words and status as any other command",
          "[system]") {
  const PassedSockets sockets;

  const Ran status = run({"millrace", "admin", "status", "--socket", sockets.path()});

  CAPTURE(status.output, status.errors);
  REQUIRE(status.status == 3);
  REQUIRE_THAT(status.errors, Catch::Contains("no answer in time") && Catch::Contains("journalctl -u millraced"));
  REQUIRE_THAT(status.errors, !Catch::Contains("systemctl start millraced"));
}

TEST_CASE("a daemon that ends leaves sockets that were passed to it where they are", "[system]") {
  const PassedSockets sockets;
  const Process daemon = started(sockets);

  daemon.kill(SIGTERM);
  const auto status = daemon.wait();

  REQUIRE(status == 0);
  REQUIRE_NOTHROW(connected(sockets.path(), SOCK_STREAM));
  REQUIRE_NOTHROW(connected(handoff_path(sockets.path()), SOCK_SEQPACKET));
}

TEST_CASE("no client fails to connect while the daemon is stopped, killed and started again and again", "[system]") {
  const PassedSockets sockets;
  std::atomic<bool> enough{false};
  std::atomic<int> opened{0};
  std::vector<std::future<std::string>> clients;  // what the first failure of each says
  for (int i = 0; i < 4; ++i)
    clients.push_back(std::async(std::launch::async, [&] {
      while (!enough) {
        const auto session = session_at(sockets.path());
        if (!session) return session.error().message;
        ++opened;
      }
      return std::string("none");
    }));

  for (int i = 0; i < (under_sanitizer() ? 3 : 8); ++i) {
    const Process daemon = started(sockets);
    REQUIRE(eventually([&, before = opened.load()] { return opened > before + 5; }, kPatience));
    daemon.kill(i % 2 == 0 ? SIGTERM : SIGKILL);
    REQUIRE(daemon.wait());
  }
  const Process last = started(sockets);
  enough = true;

  for (auto& failure : clients) REQUIRE(failure.get() == "none");
}

TEST_CASE("a daemon that finishes what is under way leaves new clients to the next one", "[system]") {
  const TempFolder folder;
  const std::string picture = write_image_folder(folder / "pictures", {.images = 1})[0];
  const PassedSockets sockets;
  const std::vector<std::string> slow{"--root", folder.path(), "--fake", "delay_us=2000000"};
  const Process first = started(sockets, slow);
  Session session = need(session_at(sockets.path()));
  const Ticket ticket = need(session.submit({.samples = {{.source = Path{picture}}}, .backend = "fake"}));

  Client client = need(Client::connect(sockets.path()));
  REQUIRE(eventually([&] { return metric_of(need(client.statistics()), "millrace_samples_in_flight") == 1; }));

  first.kill(SIGTERM);
  REQUIRE(first.wait_for("finishing what is under way"));
  auto late = std::async(std::launch::async, [&] { return session_at(sockets.path()); });
  const auto batch = session.wait(ticket);
  const auto status = first.wait();
  const Process second = sockets.start();
  const auto opened = late.get();

  CAPTURE(opened ? "" : opened.error().message);
  REQUIRE(batch);
  REQUIRE(status == 0);
  REQUIRE(opened);
}

TEST_CASE("descriptors that were sent before there was a daemon hold nobody up", "[system]") {
  const PassedSockets sockets;
  std::list<LingeringSocket> lingering;  // whose readers stay
  std::vector<UniqueFd> senders;
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    const int fd = lingering.emplace_back().fd();
    const UniqueFd& sender =
        senders.emplace_back(connected(type == SOCK_STREAM ? sockets.path() : handoff_path(sockets.path()), type));
    const std::byte byte{1};
    REQUIRE(send_message(sender.get(), {&byte, 1}, {}) == 1);
    REQUIRE(send_message(sender.get(), {&byte, 1}, {&fd, 1}) == 1);
    lingering.back().release().reset();  // the message has the last reference
  }

  const Process daemon = started(sockets);
  const auto began = std::chrono::steady_clock::now();
  std::array<std::byte, 1> end{};
  for (const UniqueFd& sender : senders) {
    const timeval limit{.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(sender.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    while (::recv(sender.get(), end.data(), end.size(), 0) > 0) {
    }
  }
  const auto took = std::chrono::steady_clock::now() - began;
  daemon.kill(SIGTERM);

  REQUIRE(daemon.wait() == 0);
  REQUIRE(took < std::chrono::seconds(LingeringSocket::kSeconds) / 2);
  REQUIRE(eventually([&] { return daemon.errors().find("sent a descriptor") != std::string::npos; }));
}

TEST_CASE("a daemon does not start with passed sockets that do not fit its settings", "[system]") {
  struct Wrong {
    std::vector<std::pair<std::string, int>> sockets;
    std::string words;
  };
  const auto [sockets, words] = GENERATE(
      Wrong{{{"other.sock", SOCK_STREAM}, {"other.sock.handoff", SOCK_SEQPACKET}}, "other.sock"},
      Wrong{{{"millrace.sock", SOCK_STREAM}}, "no listening socket at"},
      Wrong{{{"millrace.sock", SOCK_STREAM}, {"millrace.sock.handoff", SOCK_STREAM}}, "ListenSequentialPacket="},
      Wrong{{{"millrace.sock", SOCK_STREAM}, {"millrace.sock.handoff", SOCK_SEQPACKET}, {"third", SOCK_STREAM}},
            "nobody serves"});
  const PassedSockets passed(sockets);

  const Process daemon = passed.start();
  const auto status = daemon.wait();

  CAPTURE(daemon.errors());
  REQUIRE(status == 1);
  REQUIRE_THAT(daemon.errors(), Catch::Contains("the service manager passed") && Catch::Contains(words));
  REQUIRE(std::filesystem::exists(passed.folder() + "/" + sockets[0].first));
}

}  // namespace
}  // namespace millrace
