#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/support/host/eventually.h"
#include "tests/unit/daemon/serve/handoff/guests.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using shm::ReplyKind;
using shm::RequestKind;

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

TEST_CASE("a client that says Hello gets a ticket that leads to who it is", "[handoff]") {
  HandoffRig rig;

  const Welcomed welcomed(rig);

  const auto connection = rig.find(welcomed.ticket);
  REQUIRE(connection);
  REQUIRE(connection->caller->uid == ::getuid());
  REQUIRE(connection->caller->gid == ::getgid());
  REQUIRE(connection->caller->pid == ::getpid());
  std::vector<gid_t> groups(static_cast<std::size_t>(::getgroups(0, nullptr)));
  REQUIRE(::getgroups(static_cast<int>(groups.size()), groups.data()) == static_cast<int>(groups.size()));
  REQUIRE(std::set(connection->caller->groups.begin(), connection->caller->groups.end()) ==
          std::set(groups.begin(), groups.end()));
}

TEST_CASE("every connection has a ticket of its own, and other tickets lead nowhere", "[handoff]") {
  HandoffRig rig;

  const Welcomed first(rig);
  const Welcomed second(rig);

  REQUIRE(first.ticket != second.ticket);
  REQUIRE(rig.find(first.ticket)->id != rig.find(second.ticket)->id);
  REQUIRE_FALSE(rig.find(Ticket{}));
}

TEST_CASE("a connection that has not said Hello has no ticket, not even the empty one", "[handoff]") {
  HandoffRig rig;

  const RawClient silent(rig.path());
  REQUIRE(eventually([&] { return rig.connections() == 1; }));

  REQUIRE_FALSE(rig.find(Ticket{}));
}

TEST_CASE("the socket belongs to user and group", "[handoff]") {
  const HandoffRig rig;

  struct stat status {};
  REQUIRE(::stat(rig.path().c_str(), &status) == 0);

  REQUIRE((status.st_mode & 07777) == 0660);
}

TEST_CASE("a segment's descriptor arrives and works", "[handoff]") {
  HandoffRig rig;

  const Seated seated(rig);

  struct stat status {};
  REQUIRE(::fstat(seated.client.descriptor.get(), &status) == 0);
  REQUIRE(status.st_size == 10);
  REQUIRE(rig.find(seated.ticket)->id == seated.id);
}

TEST_CASE("a closed connection is reported once and its ticket is worth nothing", "[handoff]") {
  HandoffRig rig;
  Seated seated(rig);

  seated.client.hang_up();

  REQUIRE(eventually([&] { return rig.events().only_gone(seated.id); }));
  REQUIRE_FALSE(rig.find(seated.ticket));
  REQUIRE(rig.connections() == 0);
  const Result<UniqueFd> too_late = rig.on_control([&] { return rig.server().send_segment(seated.id, 0, 1_B); });
  REQUIRE(too_late.error().code == Code::kUnavailable);
}

TEST_CASE("a connection that closes before its Hello is nobody's loss", "[handoff]") {
  HandoffRig rig;
  RawClient client(rig.path());
  REQUIRE(eventually([&] { return rig.connections() == 1; }));

  client.hang_up();

  REQUIRE(eventually([&] { return rig.connections() == 0; }));
  REQUIRE(rig.events().gone() == 0);
}

TEST_CASE("a client killed with kill -9 is reported, whatever it was doing", "[handoff]") {
  HandoffRig rig;
  std::array<int, 2> pipe{};
  REQUIRE(::pipe2(pipe.data(), O_CLOEXEC) == 0);
  const std::string path = rig.path();
  const pid_t child = ::fork();
  if (child == 0) {
    RawClient client(path);
    const bool said = client.send(handoff_request(RequestKind::kHello));
    const auto reply = client.receive();
    if (said && reply) static_cast<void>(::write(pipe[1], reply->ticket, sizeof reply->ticket) + 1);
    while (true) ::pause();
  }
  REQUIRE(child > 0);
  Ticket ticket{};
  REQUIRE(::read(pipe[0], ticket.data(), ticket.size()) == static_cast<ssize_t>(ticket.size()));
  const auto connection = rig.find(ticket);
  REQUIRE(connection);
  REQUIRE(connection->caller->pid == child);

  ::kill(child, SIGKILL);
  REQUIRE(::waitpid(child, nullptr, 0) == child);

  REQUIRE(eventually([&] { return rig.events().only_gone(connection->id); }));
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_CASE("a seated client that asks for a ring gets its descriptor", "[handoff]") {
  HandoffRig rig;
  Seated seated(rig);

  REQUIRE(seated.client.send(handoff_request(RequestKind::kRingRequest, 4096)));
  const auto reply = seated.client.receive();

  REQUIRE(reply);
  REQUIRE(reply->kind == static_cast<std::uint32_t>(ReplyKind::kRing));
  REQUIRE(reply->segment_bytes == 4096);
  REQUIRE(seated.client.descriptor);
  REQUIRE(rig.events().rings() == 1);
  REQUIRE(rig.events().last_ring() == 4096_B);
}

TEST_CASE("a ring that is refused leaves the session as it was", "[handoff]") {
  HandoffRig rig;
  Seated seated(rig);
  rig.events().answer_rings_with(Error{Code::kExhausted, "the ring is too large"});

  REQUIRE(seated.client.send(handoff_request(RequestKind::kRingRequest, 1 << 20)));
  const auto refused = seated.client.receive();
  rig.events().answer_rings_with({});
  REQUIRE(seated.client.send(handoff_request(RequestKind::kRingRequest, 8192)));
  const auto made = seated.client.receive();

  REQUIRE(refused);
  REQUIRE(refused->code == static_cast<std::uint32_t>(Code::kExhausted));
  REQUIRE(std::string(refused->message) == "the ring is too large");
  REQUIRE(made);
  REQUIRE(made->kind == static_cast<std::uint32_t>(ReplyKind::kRing));
  REQUIRE(rig.events().gone() == 0);
}

TEST_CASE("messages out of turn are refused with the reason and end the connection", "[handoff]") {
  HandoffRig rig;
  const UniqueFd memfd = file_of_ten_bytes();

  SECTION("a ring before the Hello") {
    RawClient client(rig.path());
    REQUIRE(client.send(handoff_request(RequestKind::kRingRequest, 4096)));
    REQUIRE(refusal(client) == "hand-off: a RingRequest before the session is open");
    REQUIRE(rig.events().gone() == 0);
  }
  SECTION("a ring before the session") {
    Welcomed welcomed(rig);
    REQUIRE(welcomed.client.send(handoff_request(RequestKind::kRingRequest, 4096)));
    REQUIRE(refusal(welcomed.client) == "hand-off: a RingRequest before the session is open");
    REQUIRE(eventually([&] { return rig.events().gone() == 1; }));
  }
  SECTION("a second Hello") {
    Seated seated(rig);
    REQUIRE(seated.client.send(handoff_request(RequestKind::kHello)));
    REQUIRE(refusal(seated.client) == "hand-off: a second Hello");
    REQUIRE(eventually([&] { return rig.events().only_gone(seated.id); }));
  }
  REQUIRE(eventually([&] { return rig.connections() == 0; }));
}

TEST_CASE("hostile messages end their own connection and cost no descriptor", "[handoff]") {
  HandoffRig rig;
  Seated bystander(rig);
  const UniqueFd memfd = file_of_ten_bytes();
  const std::size_t before = open_descriptors();

  SECTION("too long") {
    RawClient client(rig.path());
    const std::vector<char> bytes(100'000, 'x');
    REQUIRE(client.send(bytes.data(), bytes.size()));
    REQUIRE(refusal(client).starts_with("hand-off: this is a Millrace daemon"));
  }
  SECTION("too short") {
    RawClient client(rig.path());
    REQUIRE(client.send("GET", 3));
    REQUIRE(refusal(client) == "hand-off: a message of 3 bytes, shorter than any");
  }
  SECTION("empty") {
    RawClient client(rig.path());
    REQUIRE(client.send("", 0));
    REQUIRE_FALSE(client.receive());
  }
  SECTION("a descriptor with the Hello") {
    RawClient client(rig.path());
    if (client.send(handoff_request(RequestKind::kHello), {memfd.get()}))  // newer kernels refuse it to the sender
      REQUIRE(refusal(client) == "hand-off: a message with a descriptor; the daemon takes none from its clients");
  }
  SECTION("a hundred descriptors with the request for a ring") {
    Seated seated(rig);
    if (seated.client.send(handoff_request(RequestKind::kRingRequest, 4096), std::vector<int>(100, memfd.get())))
      REQUIRE(refusal(seated.client) ==
              "hand-off: a message with a descriptor; the daemon takes none from its clients");
    REQUIRE(rig.events().rings() == 0);
  }
  SECTION("another version") {
    RawClient client(rig.path());
    shm::HandoffRequest newer = handoff_request(RequestKind::kHello);
    newer.version = 9;
    REQUIRE(client.send(newer));
    REQUIRE(refusal(client).find("install libmillrace and millraced of the same version") != std::string::npos);
  }
  SECTION("a flood") {
    RawClient client(rig.path());
    while (client.send(handoff_request(RequestKind::kHello))) {
    }
    REQUIRE(client.receive()->kind == static_cast<std::uint32_t>(ReplyKind::kWelcome));
    REQUIRE(refusal(client) == "hand-off: a second Hello");
  }

  REQUIRE(eventually([&] { return rig.connections() == 1; }));
  REQUIRE(rig.find(bystander.ticket));
  REQUIRE(eventually([&] { return open_descriptors() == before; }));
}

TEST_CASE("who says nothing, or opens no session, is sent away in time", "[handoff]") {
  HandoffRig rig({.hello_within = 1s, .session_within = 2s});
  const auto begin = std::chrono::steady_clock::now();

  RawClient silent(rig.path());
  Welcomed idle(rig);
  Seated busy(rig);

  REQUIRE(refusal(silent) == "hand-off: no Hello came in time");
  REQUIRE(refusal(idle.client) == "hand-off: no session was opened in time");
  REQUIRE(std::chrono::steady_clock::now() - begin >= 2s);
  REQUIRE(eventually([&] { return rig.events().gone() == 1; }));
  REQUIRE(rig.find(busy.ticket));
}

TEST_CASE("more connections than allowed are refused with the setting to raise", "[handoff]") {
  SECTION("in all") {
    HandoffRig rig({}, {.total = 2});
    const Welcomed first(rig);
    Welcomed second(rig);
    RawClient third(rig.path());
    REQUIRE(refusal(third) ==
            "hand-off: 2 connections are open: close sessions, or raise limits.sessions in the daemon's settings");

    second.client.hang_up();
    REQUIRE(eventually([&] { return rig.connections() == 1; }));
    const Welcomed fourth(rig);
  }
  SECTION("of one user") {
    HandoffRig rig({}, {.user = 1});
    const Welcomed first(rig);
    RawClient second(rig.path());
    REQUIRE(refusal(second) ==
            "hand-off: 1 connections of user " + std::to_string(::getuid()) +
                " are open: close sessions, or raise limits.sessions_per_user in the daemon's settings");
  }
}

TEST_CASE("the server's end closes every connection and leaves no file", "[handoff]") {
  auto rig = std::make_unique<HandoffRig>();
  Seated seated(*rig);
  const std::string path = rig->path();

  rig.reset();

  REQUIRE_FALSE(seated.client.receive());
  REQUIRE_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a dead daemon's socket is replaced, a living one's is not, nor any other file", "[handoff]") {
  const TempFolder folder;
  const std::string path = folder / "s.handoff";
  boost::asio::io_context control;
  Ledger ledger{Budgets{}};
  Counters counters;
  RecordedEvents events;

  SECTION("dead") {
    UniqueFd dead(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    REQUIRE(::bind(dead.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    dead.reset();
    REQUIRE(HandoffServer::create(control, ledger, {.path = path}, counters, events));
  }
  SECTION("living") {
    const auto first = HandoffServer::create(control, ledger, {.path = path}, counters, events);
    const auto second = HandoffServer::create(control, ledger, {.path = path}, counters, events);
    REQUIRE(first);
    REQUIRE_FALSE(second);
    REQUIRE(second.error().code == Code::kPrecondition);
    REQUIRE(second.error().message.starts_with("another daemon listens on " + path));
    REQUIRE(std::filesystem::exists(path));
  }
  SECTION("not a socket") {
    std::ofstream(path) << "precious";
    const auto server = HandoffServer::create(control, ledger, {.path = path}, counters, events);
    REQUIRE_FALSE(server);
    REQUIRE(server.error().code == Code::kPrecondition);
    REQUIRE(std::filesystem::file_size(path) == 8);
  }
  SECTION("a folder that is not there") {
    const auto server =
        HandoffServer::create(control, ledger, {.path = folder / "missing/s.handoff"}, counters, events);
    REQUIRE_FALSE(server);
    REQUIRE(server.error().code == Code::kNotFound);
  }
  SECTION("a path longer than the kernel takes") {
    const auto server =
        HandoffServer::create(control, ledger, {.path = folder / std::string(100, 'x')}, counters, events);
    REQUIRE_FALSE(server);
    REQUIRE(server.error().code == Code::kInvalid);
  }
}

}  // namespace
}  // namespace millrace
