// The daemon dies, stops or starts a second time: what its clients see, and how an epoch goes on.
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <future>

#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

struct RestartMill {
  explicit RestartMill(const std::string& fake = {}, const std::string& settings = {})
      : paths(write_image_folder(pictures, {.images = 40, .classes = 4})),
        daemon({.roots = {folder.path()}, .fake = fake, .daemon = settings}) {}

  TempFolder folder;
  std::string pictures = folder / "pictures";
  std::vector<std::string> paths;
  Daemon daemon;
};

// A client that waits for a batch which cannot come, because it holds the only slot.
struct Waiting {
  explicit Waiting(const RestartMill& mill)
      : session(need(mill.daemon.connect().open_session({.slots = 1, .batch = 4, .recipe = Recipe::train(32)}))),
        dataset(need(session.open_dataset(mill.pictures))),
        epoch(session.epoch(dataset, {.seed = 1, .shuffle = true})),
        held(need(epoch.next())) {}

  Session session;
  Dataset dataset;
  Epoch epoch;
  std::optional<Batch> held;
};

// What became of a call.
struct Ended {
  Code code{};
  std::string message;
};

std::future<Ended> wait_for_next(Epoch& epoch) {
  return std::async(std::launch::async, [&epoch] {
    const auto batch = epoch.next(std::chrono::seconds(60));
    return batch ? Ended{Code{}, "a batch"} : Ended{batch.error().code, batch.error().message};
  });
}

TEST_CASE("when the daemon is killed a waiting client is told at once, and so is every later call", "[system]") {
  const RestartMill mill;
  Waiting waiting(mill);
  std::future<Ended> ended = wait_for_next(waiting.epoch);
  REQUIRE(ended.wait_for(std::chrono::milliseconds(100)) == std::future_status::timeout);

  mill.daemon.kill(SIGKILL);
  const Ended end = ended.get();

  REQUIRE(end.code == Code::kUnavailable);
  REQUIRE_FALSE(end.message.empty());
  const auto later = waiting.session.submit({.samples = {{.source = Path{mill.paths[0]}}}});
  REQUIRE_FALSE(later);
  REQUIRE(later.error().code == Code::kUnavailable);
  REQUIRE(mill.daemon.wait() == 128 + SIGKILL);
  REQUIRE(Client::connect(mill.daemon.socket()).error().code == Code::kUnavailable);
}

TEST_CASE("a killed daemon leaves nothing in /dev/shm, and views of its clients stay readable", "[system]") {
  const RestartMill mill;
  const Process client = mill.daemon.client("hold", {mill.pictures, "3"});
  REQUIRE(client.wait_for("holding 3"));

  mill.daemon.kill(SIGKILL);
  REQUIRE(mill.daemon.wait() == 128 + SIGKILL);

  REQUIRE(eventually([] { return names_in_dev_shm().empty(); }));
  client.say("check");
  REQUIRE(client.wait_for("same"));
}

TEST_CASE("an epoch goes on by its token in another process after the daemon was killed and started again",
          "[system]") {
  RestartMill mill;
  const std::string position = mill.folder / "position";
  const std::string whole = mill.daemon.run_client("epoch", {mill.pictures});

  std::string before = mill.daemon.run_client("epoch", {mill.pictures, "position=" + position, "stop_after=4"});
  mill.daemon.kill(SIGKILL);
  REQUIRE(mill.daemon.wait() == 128 + SIGKILL);
  mill.daemon.start();
  const std::string after = mill.daemon.run_client("epoch", {mill.pictures, "position=" + position});

  REQUIRE(whole.ends_with("complete\n"));
  before.resize(before.size() - std::string("stopped\n").size());
  REQUIRE(before + after == whole);
}

TEST_CASE("a killed client's epoch goes on by its token in another process", "[system]") {
  const RestartMill mill;
  const std::string position = mill.folder / "position";
  const std::string whole = mill.daemon.run_client("epoch", {mill.pictures});

  const Process first = mill.daemon.client("epoch", {mill.pictures, "position=" + position, "step=1"});
  for (int i = 0; i < 3; ++i) first.say("next");
  REQUIRE(first.wait_for("batch 2:"));
  first.kill(SIGKILL);
  REQUIRE(first.wait() == 128 + SIGKILL);
  const std::string after = mill.daemon.run_client("epoch", {mill.pictures, "position=" + position});

  REQUIRE(first.output() + after == whole);
}

TEST_CASE("a second daemon on the same sockets refuses to start and the first goes on", "[system]") {
  const RestartMill mill;
  Client client = mill.daemon.connect();

  const Process second = Process::spawn({.argv = {bin_folder() + "/millraced", "--config", mill.daemon.settings()}});

  const auto status = second.wait();
  REQUIRE(status);
  REQUIRE(*status == 1);
  REQUIRE_THAT(second.errors(), Catch::Contains("another daemon") && Catch::Contains(mill.daemon.socket()));
  REQUIRE(client.ping());
  REQUIRE(mill.daemon.run_client("epoch", {mill.pictures}).ends_with("complete\n"));
}

TEST_CASE("a daemon does not take the place of a file that is no socket", "[system]") {
  const TempFolder folder;
  const std::string path = folder / "precious";
  write_file(path, std::string("not a socket"));

  const Process daemon =
      Process::spawn({.argv = {bin_folder() + "/millraced", "--socket", path, "--root", folder.path()}});

  REQUIRE(daemon.wait() == 1);
  REQUIRE_THAT(daemon.errors(), Catch::Contains(path));
  REQUIRE(read_file(path).size() == 12);
}

TEST_CASE("SIGTERM: the batch under way is delivered, then the daemon ends with 0", "[system]") {
  const RestartMill mill("delay_us=400000");
  Session session = need(mill.daemon.connect().open_session({.slots = 1, .batch = 1, .recipe = Recipe::train(32)}));
  const Ticket ticket = need(session.submit({.samples = {{.source = Path{mill.paths[0]}}}, .backend = "fake"}));
  Client client = mill.daemon.connect();
  REQUIRE(eventually([&] { return metric_of(need(client.statistics()), "millrace_samples_in_flight") == 1; }));

  mill.daemon.kill(SIGTERM);

  const Batch batch = need(session.wait(ticket));
  REQUIRE_FALSE(batch.failure);
  REQUIRE(batch.tensor.samples() == 1);
  REQUIRE(mill.daemon.wait(std::chrono::seconds(20)) == 0);
  REQUIRE_FALSE(std::filesystem::exists(mill.daemon.socket()));
}

TEST_CASE("a daemon that drains opens no session and takes no batch", "[system]") {
  const RestartMill mill("delay_us=1500000");
  Client client = mill.daemon.connect();
  Session session = need(client.open_session({.slots = 2, .batch = 1, .recipe = Recipe::train(32)}));
  const Ticket running = need(session.submit({.samples = {{.source = Path{mill.paths[0]}}}, .backend = "fake"}));
  REQUIRE(eventually([&] { return metric_of(need(client.statistics()), "millrace_samples_in_flight") == 1; }));

  mill.daemon.kill(SIGTERM);
  REQUIRE(eventually([&] { return !client.ping(); }));

  const auto refused = client.open_session({.slots = 1, .slot_bytes = 4_KiB});
  REQUIRE_FALSE(refused);
  REQUIRE(refused.error().code == Code::kUnavailable);
  const auto late = session.submit({.samples = {{.source = Path{mill.paths[1]}}}});
  if (late) {
    const Batch batch = need(session.wait(*late));
    REQUIRE(batch.failure);
    REQUIRE(batch.failure->code == Code::kUnavailable);
  }
  REQUIRE_FALSE(need(session.wait(running)).failure);
  REQUIRE(mill.daemon.wait(std::chrono::seconds(20)) == 0);
}

TEST_CASE("a second SIGTERM ends the daemon at once", "[system]") {
  const RestartMill mill("delay_us=60000000", "drain_seconds = 3600\n");
  Client client = mill.daemon.connect();
  Session session = need(client.open_session({.slots = 1, .batch = 1, .recipe = Recipe::train(32)}));
  need(session.submit({.samples = {{.source = Path{mill.paths[0]}}}, .backend = "fake"}));
  REQUIRE(eventually([&] { return metric_of(need(client.statistics()), "millrace_samples_in_flight") == 1; }));

  mill.daemon.kill(SIGTERM);
  REQUIRE(eventually([&] { return !client.ping(); }));
  mill.daemon.kill(SIGTERM);

  REQUIRE(mill.daemon.wait());  // by one alone it would end when the backend is done, or after an hour
  const auto batch = session.next(std::chrono::seconds(10));
  REQUIRE_FALSE(batch);
  REQUIRE(batch.error().code == Code::kUnavailable);
}

TEST_CASE("draining ends after daemon.drain_seconds", "[system]") {
  const RestartMill mill("delay_us=60000000", "drain_seconds = 1\n");
  Client client = mill.daemon.connect();
  Session session = need(client.open_session({.slots = 1, .batch = 1, .recipe = Recipe::train(32)}));
  need(session.submit({.samples = {{.source = Path{mill.paths[0]}}}, .backend = "fake"}));
  REQUIRE(eventually([&] { return metric_of(need(client.statistics()), "millrace_samples_in_flight") == 1; }));

  const auto begin = Clock::now();
  mill.daemon.kill(SIGTERM);

  REQUIRE(mill.daemon.wait() == 0);  // which is sooner than the backend is done
  REQUIRE(Clock::now() - begin >= std::chrono::seconds(1));
}

TEST_CASE("an idle daemon ends with 0, and views of its clients stay readable", "[system]") {
  const RestartMill mill;
  const Process client = mill.daemon.client("hold", {mill.pictures, "2"});
  REQUIRE(client.wait_for("holding 2"));
  mill.daemon.run_client("epoch", {mill.pictures});

  mill.daemon.kill(SIGTERM);

  REQUIRE(mill.daemon.wait(std::chrono::seconds(10)) == 0);
  client.say("check");
  client.wait_for("same");
  CAPTURE(client.output(), client.errors(), client.wait(std::chrono::milliseconds(0)).value_or(-1));
  REQUIRE(client.output().ends_with("same\n"));
}

}  // namespace
}  // namespace millrace
