// How sessions end and how daemons do: a client that closes its session is told from one that dies, and a daemon that
// stops from one that is gone.
#include <catch2/catch.hpp>
#include <csignal>
#include <future>
#include <stdexcept>

#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

struct EndsMill {
  explicit EndsMill(const std::string& fake = {})
      : paths(write_image_folder(pictures, {.images = 40, .classes = 4})),
        daemon({.roots = {folder.path()}, .fake = fake}),
        watcher(daemon.connect()) {}

  double metric(const std::string& name) { return metric_of(need(watcher.statistics()), name); }
  // Once all sessions have ended.
  double died() {
    REQUIRE(eventually([&] { return metric("millrace_sessions") == 0; }));
    return metric("millrace_sessions_reclaimed_total");
  }
  Session open() { return need(daemon.connect().open_session({.slots = 2, .batch = 4, .recipe = Recipe::train(32)})); }
  Process run(const std::vector<std::string>& more) const {
    std::vector<std::string> argv{
        bin_folder() + "/millrace", "run", "--socket", daemon.socket(), "--dataset", pictures, "--size", "32"};
    argv.insert(argv.end(), more.begin(), more.end());
    return Process::spawn({.argv = argv, .env = {{"NO_COLOR", "1"}}});
  }

  TempFolder folder;
  std::string pictures = folder / "pictures";
  std::vector<std::string> paths;
  Daemon daemon;
  Client watcher;
};

TEST_CASE("sessions that the library closes do not count as died, whatever is under way or kept", "[system]") {
  EndsMill mill;
  std::optional<Batch> kept;
  std::optional<Session> moved;

  { const Session idle = mill.open(); }
  {
    Session busy = mill.open();
    for (int i = 0; i < 8; ++i) need(busy.submit({.samples = {{.source = Path{mill.paths[0]}}}}));
  }
  {
    Session session = mill.open();
    const Dataset dataset = need(session.open_dataset(mill.pictures));
    Epoch epoch = session.epoch(dataset, {});
    kept = need(epoch.next());  // outlives its session
    moved = mill.open();
    *moved = std::move(session);
  }
  moved.reset();
  try {
    const Session thrown = mill.open();
    throw std::runtime_error("a client's own trouble");
  } catch (const std::runtime_error&) {
  }

  REQUIRE(kept->tensor.samples() == 4);
  kept.reset();
  REQUIRE(mill.died() == 0);
  REQUIRE(mill.metric("millrace_sessions_opened_total") == 5);
}

TEST_CASE("sessions of finished, failed and interrupted commands do not count as died", "[system]") {
  EndsMill mill;
  write_file(mill.pictures + "/bad.jpg", std::string("no picture"));

  REQUIRE(mill.run({}).wait() == 0);
  REQUIRE(mill.run({"--on-error", "fail"}).wait() == 1);
  const Process interrupted = mill.run({"--epochs", "1000000"});
  REQUIRE(interrupted.wait_for("epoch 2/"));
  interrupted.kill(SIGINT);
  REQUIRE(interrupted.wait() == 130);

  REQUIRE(mill.died() == 0);
}

TEST_CASE("every client that is killed counts as died", "[system]") {
  EndsMill mill;
  for (int i = 0; i < 3; ++i) {
    const Process run = mill.run({"--epochs", "1000000"});
    REQUIRE(run.wait_for("epoch 1/"));
    run.kill(SIGKILL);
    REQUIRE(run.wait() == 128 + SIGKILL);
  }
  { const Session closed = mill.open(); }

  REQUIRE(mill.died() == 3);
}

TEST_CASE("a session closes at once while its daemon hangs", "[system]") {
  const EndsMill mill;
  std::optional<Session> session(need(mill.daemon.connect().open_session({.recipe = Recipe::train(32)})));
  mill.daemon.kill(SIGSTOP);

  std::future<void> closed = std::async(std::launch::async, [&] { session.reset(); });

  const bool in_time =
      closed.wait_for(std::chrono::seconds(20)) == std::future_status::ready;  // without a bound: never
  mill.daemon.kill(SIGCONT);
  REQUIRE(in_time);
}

TEST_CASE("a session that slept while its daemon stopped learns that it did", "[system]") {
  EndsMill mill;
  Session session = mill.open();
  mill.daemon.kill(SIGTERM);
  REQUIRE(mill.daemon.wait() == 0);

  const auto ticket = session.submit({.samples = {{.source = Path{mill.paths[0]}}}});
  const Error error = ticket ? session.wait(*ticket).error() : ticket.error();

  CAPTURE(error.message);
  REQUIRE(error.code == Code::kUnavailable);
  REQUIRE_THAT(error.message, Catch::Contains("millraced is stopping"));
}

// A batch of the fake backend is under way: the daemon drains until it is done.
struct Draining : EndsMill {
  Draining() : EndsMill("delay_us=1500000"), session(open()) {
    need(session.submit({.samples = {{.source = Path{paths[0]}}}, .backend = "fake"}));
    REQUIRE(eventually([&] { return metric("millrace_samples_in_flight") == 1; }));
    daemon.kill(SIGTERM);
    REQUIRE(eventually([&] { return !watcher.ping(); }));
  }

  Session session;
};

void require_stopping(const Error& error) {
  CAPTURE(error.message);
  REQUIRE(error.code == Code::kUnavailable);
  REQUIRE_THAT(error.message, Catch::Contains("millraced is stopping"));
  REQUIRE_THAT(error.message,
               !Catch::Contains("gone away") && !Catch::Contains("systemctl") && !Catch::Contains("cannot reach"));
}

TEST_CASE("a daemon that stops says so to every caller", "[system]") {
  Draining mill;

  const auto ping = mill.watcher.ping();
  const auto opened = mill.watcher.open_session({.slots = 1, .slot_bytes = 4_KiB});
  const auto late = mill.session.submit({.samples = {{.source = Path{mill.paths[1]}}}});
  const Process command = mill.run({});

  REQUIRE_FALSE(ping);
  require_stopping(ping.error());
  REQUIRE_FALSE(opened);
  require_stopping(opened.error());
  require_stopping(*need(mill.session.wait(need(late))).failure);
  REQUIRE(command.wait() == 3);
  REQUIRE_THAT(command.errors(), Catch::Contains("millraced is stopping") && !Catch::Contains("systemctl"));
}

TEST_CASE("a daemon that stops says so to a client that waits, and one that is killed says nothing", "[system]") {
  for (const int signal : {SIGTERM, SIGKILL}) {
    const EndsMill mill;
    Session session = need(mill.daemon.connect().open_session({.slots = 1, .batch = 4, .recipe = Recipe::train(32)}));
    const Dataset dataset = need(session.open_dataset(mill.pictures));
    Epoch epoch = session.epoch(dataset, {});
    const auto held = need(epoch.next());  // the only slot
    std::future<Result<std::optional<Batch>>> waiting =
        std::async(std::launch::async, [&] { return epoch.next(std::chrono::seconds(60)); });

    mill.daemon.kill(signal);

    const auto next = waiting.get();
    REQUIRE_FALSE(next);
    if (signal == SIGTERM) {
      require_stopping(next.error());
      continue;
    }
    REQUIRE(next.error().code == Code::kUnavailable);
    REQUIRE_THAT(next.error().message, Catch::Contains("has gone away") && !Catch::Contains("stopping"));
  }
}

}  // namespace
}  // namespace millrace
