// Clients killed with -9, wherever they are: the daemon has their memory back, and nobody else notices.
#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>

#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/pictures/test_images.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

// What a daemon holds for its clients.
struct Held {
  double sessions, segment_bytes, slots, connections;
  std::size_t segments;
  friend bool operator==(const Held&, const Held&) = default;
};

Held held_by(const Daemon& daemon, Client& client) {
  const Statistics statistics = need(client.statistics());
  return {.sessions = metric_of(statistics, "millrace_sessions"),
          .segment_bytes = metric_of(statistics, "millrace_segment_bytes"),
          .slots = metric_of(statistics, "millrace_slots"),
          .connections = metric_of(statistics, "millrace_handoff_connections"),
          .segments = daemon.segments().size()};
}

constexpr Held kNothing{0, 0, 0, 0, 0};

struct CrashMill {
  CrashMill()
      : paths(write_image_folder(folder / "pictures", {.images = 64, .classes = 4})),
        daemon({.roots = {folder.path()}}),
        client(daemon.connect()) {}
  Held held() { return held_by(daemon, client); }

  // From now until the daemon holds nothing for clients.
  std::chrono::milliseconds until_reclaimed() {
    const auto begin = Clock::now();
    REQUIRE(eventually([&] { return held() == kNothing; }));
    REQUIRE(eventually([] { return names_in_dev_shm().empty(); }));
    return std::chrono::ceil<std::chrono::milliseconds>(Clock::now() - begin);
  }

  TempFolder folder;
  std::vector<std::string> paths;
  std::string pictures = folder / "pictures";
  Daemon daemon;
  Client client;
};

// Kills a client in the same state several times, and says how long it took until the daemon held nothing of it. No
// timer has a part in that: on a quiet machine it is a few milliseconds.
template <class Kill>
void require_reclaimed(const char* when, Kill kill) {
  std::vector<std::chrono::milliseconds> times;
  for (int round = 0; round < 5; ++round) times.push_back(kill());
  std::sort(times.begin(), times.end());
  const auto median = times[times.size() / 2];
  std::fprintf(stderr, "killed %s: reclaimed after %lld ms (median of 5, at most %lld ms)\n", when,
               static_cast<long long>(median.count()), static_cast<long long>(times.back().count()));
}

TEST_CASE("a client killed with kill -9 while it holds slots gives them back", "[system]") {
  CrashMill mill;
  require_reclaimed("while holding slots", [&] {
    const Process client = mill.daemon.client("hold", {mill.pictures, "4"});
    REQUIRE(client.wait_for("holding 4"));
    REQUIRE(mill.held().segments == 1);
    client.kill(SIGKILL);
    return mill.until_reclaimed();
  });
  REQUIRE(mill.daemon.metric("millrace_sessions_reclaimed_total") == 5);
}

TEST_CASE("a client killed with kill -9 with batches under way gives everything back", "[system]") {
  CrashMill mill;
  require_reclaimed("with batches under way", [&] {
    const Process client = mill.daemon.client("die_with_work", {mill.pictures});
    REQUIRE(client.wait_for("submitted"));
    client.say("die");
    REQUIRE(client.wait() == 128 + SIGKILL);
    return mill.until_reclaimed();
  });
  REQUIRE(eventually([&] { return mill.daemon.metric("millrace_batches_in_flight") == 0; }));
  REQUIRE(mill.daemon.metric("millrace_samples_in_flight") == 0);
  REQUIRE(mill.daemon.metric("millrace_encoded_in_flight_bytes") == 0);
}

TEST_CASE("a client killed with kill -9 in the middle of sending a batch leaves nothing", "[system]") {
  CrashMill mill;
  const std::string file = mill.folder / "large.jpg";
  write_file(file, make_jpeg({.pixels = make_pixels(256, 256, 3, 1)}));
  require_reclaimed("while submitting", [&] {
    const Process client = mill.daemon.client("die_in_submit", {file});
    REQUIRE(client.wait() == 128 + SIGKILL);
    REQUIRE(client.output() == "submitting\n");
    return mill.until_reclaimed();
  });
}

TEST_CASE("a client killed with kill -9 in the hand-off leaves nothing, whichever step it has reached", "[system]") {
  CrashMill mill;
  for (const std::string stage : {"connected", "welcomed", "opened"}) {
    require_reclaimed(("in the hand-off, " + stage).c_str(), [&] {
      const Process client = mill.daemon.client("handoff", {stage});
      REQUIRE(client.wait_for("at " + stage));
      REQUIRE(eventually([&] { return mill.held().connections == 1; }));
      REQUIRE(mill.held().segments == (stage == "opened" ? 1U : 0U));
      client.kill(SIGKILL);
      return mill.until_reclaimed();
    });
  }
}

TEST_CASE("clients that are killed all around it do not change another's epoch by a byte", "[system]") {
  CrashMill mill;
  const std::string alone = mill.daemon.run_client("epoch", {mill.pictures, "batch=4"});
  const std::string file = mill.folder / "large.jpg";
  write_file(file, make_jpeg({.pixels = make_pixels(256, 256, 3, 1)}));

  const Process reader = mill.daemon.client("epoch", {mill.pictures, "batch=4", "step=1"});
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 3; ++i) reader.say("next");
    const Process holder = mill.daemon.client("hold", {mill.pictures, "3"});
    const Process worker = mill.daemon.client("die_with_work", {mill.pictures});
    const Process sender = mill.daemon.client("die_in_submit", {file});
    REQUIRE(holder.wait_for("holding 3"));
    REQUIRE(worker.wait_for("submitted"));
    holder.kill(SIGKILL);
    worker.say("die");
    REQUIRE(sender.wait() == 128 + SIGKILL);
    REQUIRE(worker.wait() == 128 + SIGKILL);
  }
  for (int i = 12; i < 17; ++i) reader.say("next");
  REQUIRE(reader.wait() == 0);

  REQUIRE(alone.ends_with("complete\n"));
  REQUIRE(reader.output() == alone);
  mill.until_reclaimed();
}

TEST_CASE("a stopped client keeps its slots and nobody waits for it", "[system]") {
  CrashMill mill;
  const Process client = mill.daemon.client("hold", {mill.pictures, "2"});
  REQUIRE(client.wait_for("holding 2"));

  client.kill(SIGSTOP);
  const std::string others = mill.daemon.run_client("epoch", {mill.pictures});
  client.kill(SIGCONT);
  client.say("check");

  REQUIRE(others.ends_with("complete\n"));
  REQUIRE(client.wait_for("same"));
}

}  // namespace
}  // namespace millrace
