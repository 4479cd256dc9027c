// What a client maps, and when: the daemon may still be filling the segment, or have given the rest of it up.
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string>

#include "millrace/client.h"
#include "tests/unit/client/scripted_daemon.h"

using namespace std::chrono_literals;
using millrace::Client;
using millrace::Session;
using millrace::test::ScriptedDaemon;
namespace v1 = millrace::v1;

namespace {

Session open_slots(ScriptedDaemon& daemon, std::uint32_t slots) {
  auto client = Client::connect(daemon.socket());
  REQUIRE(client);
  auto session = client->open_session({.slots = slots, .slot_bytes = millrace::Bytes{64 * 1024}, .timeout = 30s});
  if (!session) FAIL(session.error().message);
  return *std::move(session);
}

millrace::Ticket submit_one_of(Session& session, ScriptedDaemon& daemon) {
  auto ticket = session.submit({.samples = {{.source = millrace::Path{"/data/a.jpg"}}}});
  REQUIRE(ticket);
  REQUIRE(daemon.next_message().submit().batch_id() == ticket->batch);
  return *ticket;
}

// Resident in this process's read-only mappings of scripted daemons' segments.
std::uint64_t mapped_bytes_of_segments() {
  std::ifstream maps("/proc/self/smaps");
  bool ours = false;
  std::uint64_t bytes = 0;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    std::string key, mode;
    fields >> key >> mode;
    if (key.find('-') != std::string::npos && key.back() != ':')
      ours = mode == "r--s" && line.find("memfd:scripted") != std::string::npos;
    if (ours && key == "Rss:") bytes += std::stoull(mode) * 1024;
  }
  return bytes;
}

}  // namespace

TEST_CASE("a batch is read in a slot that was filled after the session had been opened", "[client]") {
  ScriptedDaemon daemon({.filled_slots = 1});
  Session session = open_slots(daemon, 3);
  REQUIRE(daemon.may_fill_later());
  const auto first = submit_one_of(session, daemon);
  daemon.send(daemon.seal(first.batch, 0, 1, 2, 1000));
  const auto held = session.next(30s);
  REQUIRE(held->tensor.data()[1000] == std::byte{1});
  const auto second = submit_one_of(session, daemon);

  daemon.fill(3);
  daemon.send(daemon.seal(second.batch, 2, 1, 3, 1000));
  const auto batch = session.next(30s);

  REQUIRE(batch);
  REQUIRE(batch->tensor.valid());
  REQUIRE(batch->tensor.data()[2000] == std::byte{2});
}

TEST_CASE("a slot's pages are mapped when its first batch comes, all at once, and no others", "[client]") {
  ScriptedDaemon daemon;
  const auto pages_before = mapped_bytes_of_segments();
  Session session = open_slots(daemon, 8);
  const auto pages_open = mapped_bytes_of_segments();
  const auto ticket = submit_one_of(session, daemon);

  daemon.send(daemon.seal(ticket.batch, 3, 1, 1, 100));
  const auto batch = session.next(30s);

  REQUIRE(batch);
  REQUIRE(pages_open - pages_before == 4096);                     // the headers
  REQUIRE(mapped_bytes_of_segments() - pages_open == 64 * 1024);  // nobody has read it yet
}

TEST_CASE("a session has fewer slots once the daemon has withdrawn some, and goes on", "[client]") {
  ScriptedDaemon daemon({.filled_slots = 2});
  Session session = open_slots(daemon, 4);
  REQUIRE(session.slots() == 4);
  const auto ticket = submit_one_of(session, daemon);
  v1::ServerMessage withdrawn;
  withdrawn.mutable_slots_withdrawn()->set_slots(2);
  withdrawn.mutable_slots_withdrawn()->set_message("/dev/shm is full");

  daemon.send(withdrawn);
  daemon.send(daemon.seal(ticket.batch, 1, 1, 1, 1000));
  const auto batch = session.next(30s);

  REQUIRE(batch);
  REQUIRE(batch->tensor.valid());
  REQUIRE(session.slots() == 2);
}
