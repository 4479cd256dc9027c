// `millrace admin drain` and `resume`: what is under way is finished, nothing is lost, and it ends as it was asked to.
#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <vector>

#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"
#include "tests/system/support/operator.h"

namespace millrace {
namespace {

struct Rig {
  explicit Rig(const std::string& fake = "", const std::string& drain = "30")
      : paths(write_image_folder(folder.path(), {.images = 8, .only_jpeg = true})),
        daemon({.roots = {folder.path()}, .fake = fake, .daemon = "drain_seconds = " + drain + "\n"}) {}
  Session open() const {
    return need(daemon.connect().open_session({.slots = 2, .batch = 8, .recipe = Recipe::train(32)}));
  }
  BatchRequest batch(const std::string& backend = "") const {
    BatchRequest request{.backend = backend};
    for (const std::string& path : paths) request.samples.push_back({.source = Path{path}});
    return request;
  }

  TempFolder folder;
  std::vector<std::string> paths;
  Daemon daemon;
};

Batch made(Session& session, BatchRequest request) {
  return need(session.wait(need(session.submit(std::move(request)))));
}

// A batch that takes seconds, so that it is under way.
constexpr const char* kSlow = "delay_us=400000";

TEST_CASE("a drain under load loses no batch: each is finished, or refused with the reason", "[system]") {
  const Rig rig("delay_us=5000");
  Session session = rig.open();
  std::vector<Ticket> tickets;
  for (int i = 0; i < 30; ++i) tickets.push_back(need(session.submit(rig.batch("fake"))));

  const Process drain =
      Process::spawn({.argv = {bin_folder() + "/millrace", "admin", "drain", "--socket", rig.daemon.socket()}});
  int made = 0, refused = 0;
  for (const Ticket& ticket : tickets) {
    const Batch batch = need(session.wait(ticket));
    if (!batch.failure) {
      ++made;
      REQUIRE(batch.errors.empty());
      REQUIRE(batch.tensor.samples() == 8);
    } else {
      ++refused;
      REQUIRE(batch.failure->code == Code::kUnavailable);
      REQUIRE_THAT(batch.failure->message, Catch::Contains("millraced is draining"));
    }
  }

  CAPTURE(drain.output(), drain.errors());
  REQUIRE(drain.wait() == 0);
  REQUIRE(made + refused == 30);
  REQUIRE(made >= 1);
  REQUIRE_THAT(drain.output(),
               Catch::Contains("drained: no batch is under way, 1 sessions are open; it takes nothing new "
                               "until `millrace admin resume`"));
  REQUIRE(rig.daemon.metric("millrace_batches_completed_total") == made);
}

TEST_CASE("a drained daemon refuses sessions and batches and is not healthy, until it is resumed", "[system]") {
  const Rig rig;
  Session session = rig.open();
  REQUIRE(admin(rig.daemon, {"drain"}).status == 0);

  const Result<Session> another = rig.daemon.connect().open_session({.slots = 1, .slot_bytes = 1_MiB});
  const Batch refused = made(session, rig.batch());
  const Ran ping = run({"millrace", "ping", "--socket", rig.daemon.socket()});
  const Ran alive = run({"millrace", "ping", "--alive", "--socket", rig.daemon.socket()});
  const Ran told = run({"millrace", "ping", "--alive", "--json", "--socket", rig.daemon.socket()});
  const Ran status = admin(rig.daemon, {"status"});

  REQUIRE(another.error().code == Code::kUnavailable);
  REQUIRE_THAT(another.error().message, Catch::Contains("millraced is draining"));
  REQUIRE(refused.failure->code == Code::kUnavailable);
  REQUIRE(ping.status == 3);
  REQUIRE_THAT(ping.errors, Catch::Contains("draining"));
  CAPTURE(alive.errors, told.errors);
  REQUIRE(alive.status == 0);
  REQUIRE_THAT(alive.output, Catch::Contains("is there, stopping or draining: it takes nothing new"));
  REQUIRE_FALSE(parsed(told.output).get<bool>("serving"));
  REQUIRE_THAT(status.output, Catch::Contains("draining, until `millrace admin resume`; 0 batches under way\n"));
  REQUIRE(parsed(admin(rig.daemon, {"drain", "--json"}).output).get<bool>("drained"));

  REQUIRE(admin(rig.daemon, {"resume"}).output == "the daemon takes new work again\n");
  REQUIRE(admin(rig.daemon, {"resume"}).output == "it did not drain\n");
  Session later = rig.open();
  REQUIRE_FALSE(made(session, rig.batch()).failure);
  REQUIRE_FALSE(made(later, rig.batch()).failure);
  REQUIRE(run({"millrace", "ping", "--socket", rig.daemon.socket()}).status == 0);
  REQUIRE_THAT(run({"millrace", "ping", "--alive", "--socket", rig.daemon.socket()}).output,
               Catch::Contains("is serving at"));
}

TEST_CASE("an epoch that a drain interrupts goes on from its position, with no sample lost or doubled", "[system]") {
  const Rig rig;
  std::vector<std::uint64_t> seen;
  std::string position;
  for (int round = 0; round < 2; ++round) {
    Session session = rig.open();
    const Dataset dataset = need(session.open_dataset(rig.folder.path()));
    auto epoch = session.epoch(dataset, {.batch = 1, .position = position});
    for (Batch& batch : epoch) {
      seen.push_back(batch.tensor.ids().front());
      position = batch.position;
      if (round == 0 && seen.size() == 2) REQUIRE(admin(rig.daemon, {"drain"}).status == 0);
    }
    if (round == 0) REQUIRE(admin(rig.daemon, {"resume"}).status == 0);
  }
  std::sort(seen.begin(), seen.end());
  REQUIRE(seen == std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("drain --stop ends the daemon with status 0 once nothing is under way", "[system]") {
  const Rig rig("delay_us=50000");
  Session session = rig.open();
  const Ticket ticket = need(session.submit(rig.batch("fake")));

  const Process drain = Process::spawn(
      {.argv = {bin_folder() + "/millrace", "admin", "drain", "--stop", "--socket", rig.daemon.socket()}});
  const Batch batch = need(session.wait(ticket));

  REQUIRE_FALSE(batch.failure);
  const std::optional<int> status = drain.wait();
  CAPTURE(drain.output(), drain.errors());
  REQUIRE(status == 0);
  REQUIRE_THAT(drain.output(), Catch::EndsWith("the daemon ends\n"));
  REQUIRE(rig.daemon.wait() == 0);
}

TEST_CASE("Ctrl-C ends the waiting for a drain, and not the drain", "[system]") {
  const Rig rig("delay_us=1500000");
  Session session = rig.open();
  const Ticket ticket = need(session.submit(rig.batch("fake")));
  const Process drain =
      Process::spawn({.argv = {bin_folder() + "/millrace", "admin", "drain", "--socket", rig.daemon.socket()}});
  REQUIRE(eventually([&] { return parsed(admin(rig.daemon, {"status", "--json"}).output).get<bool>("draining"); }));

  drain.kill(SIGINT);

  const std::optional<int> status = drain.wait();
  CAPTURE(status.value_or(-1), drain.output(), drain.errors());
  REQUIRE(status == 130);
  REQUIRE_THAT(drain.errors(), Catch::Contains("interrupted; the daemon goes on draining; `millrace admin resume`"));
  REQUIRE(parsed(admin(rig.daemon, {"status", "--json"}).output).get<bool>("draining"));
  REQUIRE_FALSE(need(session.wait(ticket)).failure);
}

TEST_CASE("a drain that takes longer than daemon.drain_seconds says so, and stays on", "[system]") {
  const Rig rig("delay_us=1500000", "1");
  Session session = rig.open();
  const Ticket ticket = need(session.submit(rig.batch("fake")));

  const Ran drain = admin(rig.daemon, {"drain"});

  CAPTURE(drain.output, drain.errors);
  REQUIRE(drain.status == 1);
  REQUIRE_THAT(drain.output, Catch::StartsWith("daemon.drain_seconds are over, and 1 batches are still under way;"));
  REQUIRE(rig.daemon.running());
  REQUIRE_FALSE(need(session.wait(ticket)).failure);
}

TEST_CASE("SIGTERM ends a daemon that was drained by order", "[system]") {
  const Rig rig;
  REQUIRE(admin(rig.daemon, {"drain"}).status == 0);

  rig.daemon.kill(SIGTERM);

  REQUIRE(rig.daemon.wait() == 0);
}

}  // namespace
}  // namespace millrace
