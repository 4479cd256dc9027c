// Where a session's time goes, and in what its program waits: a real daemon's figures of what really happens to it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/command.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/host_faults.h"
#include "tests/system/support/need.h"
#include "tests/system/support/raw_mill.h"
#include "tests/system/support/raw_session.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

SessionStatistics statistics_of(const Daemon& daemon, std::uint64_t session) {
  for (const SessionStatistics& one : need(daemon.connect().statistics()).sessions)
    if (one.id == session) return one;
  throw std::runtime_error("no such session");
}

struct TimeMill {
  explicit TimeMill(DaemonSpec spec = {})
      : daemon([&] {
          paths = write_image_folder(folder / "pictures", {.images = 16, .classes = 2});
          spec.roots = {folder.path()};
          return spec;
        }()) {}

  SessionStatistics of(const Session& session) const { return statistics_of(daemon, session.id()); }

  BatchRequest batch() const { return {.samples = {{.source = Path{paths[0]}}}, .recipe = Recipe::train(32)}; }

  TempFolder folder;
  std::vector<std::string> paths;
  Daemon daemon;
};

using Part = Seconds StateTime::*;

Seconds of(const SessionStatistics& session, const std::string& state, Part part = &StateTime::time) {
  for (const StateTime& one : session.states)
    if (one.state == state) return one.*part;
  throw std::runtime_error("no state " + state);
}

Seconds sum_of(const SessionStatistics& session, Part part = &StateTime::time) {
  Seconds sum{};
  for (const StateTime& state : session.states) sum += state.*part;
  return sum;
}

TEST_CASE("a session's seconds by state add up to its life, and tell of what happened in it", "[system]") {
  const TimeMill mill;
  const auto before = std::chrono::steady_clock::now();
  Session session = need(mill.daemon.connect().open_session({.slots = 2, .slot_bytes = 1_MiB}));
  const auto after = std::chrono::steady_clock::now();
  const Dataset dataset = need(session.open_dataset(mill.folder / "pictures"));
  std::size_t batches = 0;
  {
    Epoch epoch = session.epoch(dataset, {.batch = 2, .recipe = Recipe::train(64), .seed = 1});
    while (std::optional<Batch> batch = need(epoch.next())) ++batches;
  }
  REQUIRE(batches == 8);
  std::vector<Batch> held;
  for (int i = 0; i < 2; ++i) held.push_back(need(session.wait(need(session.submit(mill.batch())))));
  need(session.submit(mill.batch()));
  REQUIRE(eventually([&] { return of(mill.of(session), "client") > 100ms; }));

  const auto asked = std::chrono::steady_clock::now();
  const SessionStatistics told = mill.of(session);
  const Seconds life = Seconds(std::chrono::steady_clock::now() - before), least = asked - after;

  CHECK(told.age <= life);
  CHECK(told.age >= least);
  CHECK(sum_of(told).count() == Approx(told.age.count()).epsilon(0.01));
  CHECK(of(told, "listing") > 0s);
  CHECK(of(told, "reading") > 0s);
  CHECK(of(told, "making") > 0s);
  CHECK(of(told, "host") == 0s);
  CHECK(of(told, "device") == 0s);
}

TEST_CASE("how long a program waited is told with each batch that it gives back, and laid on the states before",
          "[system]") {
  const TimeMill mill;
  Session session = need(mill.daemon.connect().open_session({.slots = 2, .slot_bytes = 1_MiB}));
  const Dataset dataset = need(session.open_dataset(mill.folder / "pictures"));
  {
    Epoch epoch = session.epoch(dataset, {.batch = 2, .recipe = Recipe::train(64)});
    while (const std::optional<Batch> batch = need(epoch.next())) CHECK_FALSE(batch->failure);
  }
  for (int i = 0; i < 3; ++i) CHECK_FALSE(need(session.wait(need(session.submit(mill.batch())))).failure);
  for (int i = 0; i < 3; ++i) {
    need(session.submit(mill.batch()));
    CHECK_FALSE(need(session.next()).failure);
  }

  REQUIRE(eventually([&] { return mill.of(session).waits_told == 14; }));
  const SessionStatistics told = mill.of(session);
  CHECK(sum_of(told, &StateTime::waited) > 0s);
  CHECK(sum_of(told, &StateTime::waited) <= told.age);
  CHECK(of(told, "making", &StateTime::waited) > 0s);
}

TEST_CASE("a read that hangs is the host's, for the session and for the program that waits", "[system]") {
  const TempFolder shared;
  HostFaults faults(shared / "faults");
  const TimeMill mill({.env = {faults.env()}, .program = bad_host_program()});
  Session session = need(mill.daemon.connect().open_session({.slots = 2, .slot_bytes = 1_MiB}));
  faults.reads_hang("pictures");
  const Ticket ticket = need(session.submit(mill.batch()));
  std::future<Result<Batch>> waits = std::async(std::launch::async, [&] { return session.wait(ticket); });
  REQUIRE(eventually([&] { return of(mill.of(session), "host") > 300ms; }));

  faults.reads_hang("");
  CHECK_FALSE(need(waits.get()).failure);

  REQUIRE(eventually([&] { return mill.of(session).waits_told == 1; }));
  const SessionStatistics told = mill.of(session);
  CHECK(of(told, "host", &StateTime::waited) > 300ms);
  CHECK(of(told, "host", &StateTime::waited) <= of(told, "host"));
  CHECK(of(told, "reading", &StateTime::waited) > 500ms);  // a read is taken for stuck after a second
  CHECK(sum_of(told).count() == Approx(told.age.count()).epsilon(0.01));
}

TEST_CASE("a client that claims a year of waiting has waited no longer than since its last wait", "[system]") {
  constexpr std::uint64_t kYear = std::uint64_t{365} * 24 * 3600 * 1'000'000'000;
  const RawMill mill;
  RawSession session(mill.daemon.socket(), {});
  const std::uint64_t id = need(mill.daemon.connect().statistics()).sessions.at(0).id;
  const auto told = [&] { return statistics_of(mill.daemon, id); };
  const auto make_and_release = [&](std::uint64_t batch, std::optional<std::uint64_t> waited) {
    session.send(mill.submit(batch));
    v1::ClientMessage message = release_of(session.receive().completed().handle());
    if (waited) message.mutable_release()->set_waited_ns(*waited);
    session.send(message);
  };

  make_and_release(1, std::nullopt);  // as an older client
  REQUIRE(eventually([&] { return told().slots_free == told().slots; }));
  CHECK(told().waits_told == 0);
  CHECK(sum_of(told(), &StateTime::waited) == 0s);
  make_and_release(2, std::numeric_limits<std::uint64_t>::max());
  make_and_release(3, kYear);

  REQUIRE(eventually([&] { return told().waits_told == 2; }));
  const SessionStatistics last = told();
  CHECK(sum_of(last, &StateTime::waited) > 0s);
  CHECK(sum_of(last, &StateTime::waited) <= last.age);
  for (const StateTime& state : last.states) CHECK(state.waited <= state.time);
}

TEST_CASE("millrace stats says where a session's time went and in what its program waited", "[system]") {
  const TimeMill mill;
  Session session = need(mill.daemon.connect().open_session({.slots = 2, .slot_bytes = 1_MiB}));
  const std::string number = std::to_string(session.id());
  const auto stats = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"millrace", "stats", "--socket", mill.daemon.socket()};
    words.insert(words.end(), more.begin(), more.end());
    return run(words).output;
  };
  Batch first = need(session.wait(need(session.submit(mill.batch()))));
  CHECK_THAT(stats({}), Catch::Contains("session " + number + ": ") && Catch::Contains("has not said yet"));

  first = {};
  REQUIRE(eventually([&] { return mill.of(session).waits_told == 1; }));

  CHECK_THAT(stats({}), Catch::Contains("session " + number + ": ") && Catch::Contains(" %; its program waited "));
  const std::string json = stats({"--json"});
  for (const char* name : {"\"state_seconds\":{\"idle\":", "\"waited_seconds\":{\"idle\":", "\"waits_told\":1"})
    CHECK_THAT(json, Catch::Contains(name));
}

}  // namespace
}  // namespace millrace
