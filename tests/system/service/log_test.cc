// What an operator reads of a real daemon on its stderr.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <sstream>

#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

Result<Session> open_named(const Daemon& daemon, const std::string& name = "") {
  return daemon.connect().open_session({.name = name, .slots = 2, .slot_bytes = 1_MiB});
}

// The first line of its log with all of `parts` in it; waits for it. Empty: none came.
std::string line_with(const Daemon& daemon, const std::vector<std::string>& parts) {
  std::string found;
  const auto look = [&] {
    std::istringstream lines(daemon.errors());
    while (std::getline(lines, found)) {
      if (std::all_of(parts.begin(), parts.end(), [&](const auto& part) { return found.find(part) != found.npos; }))
        return true;
    }
    return false;
  };
  return eventually(look) ? found : "";
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

const std::string kMe = "user " + std::to_string(::getuid()) + ", pid " + std::to_string(::getpid());

TEST_CASE("the log says who opens a session, and what it had when it closes, as programs read it", "[system]") {
  const TempFolder folder;
  write_image_folder(folder / "a \"b\" c", {.images = 5, .only_jpeg = true});
  const Daemon daemon({.roots = {folder.path()}});

  {
    Session session =
        need(daemon.connect().open_session({.name = "train", .slots = 2, .batch = 2, .recipe = Recipe::train(32)}));
    const Dataset dataset = need(session.open_dataset(folder / "a \"b\" c"));
    REQUIRE_FALSE(session.open_dataset("/elsewhere"));
    auto epoch = session.epoch(dataset);
    for (const Batch& batch : epoch) REQUIRE(batch.bad == 0);
    Client client = daemon.connect();
    REQUIRE(eventually([&] { return need(client.statistics()).sessions.at(0).waits_told == 3; }));  // of all releases
  }

  const std::string whose = "session=1 uid=" + std::to_string(::getuid()) + " gid=" + std::to_string(::getgid()) +
                            " pid=" + std::to_string(::getpid()) + " name=\"train\" ";
  REQUIRE_THAT(line_with(daemon, {"info session 1 opened: "}), Catch::Contains(whose + "slots=2 segment_bytes="));
  const std::string closed = line_with(daemon, {"info session 1 closed: "});
  CAPTURE(closed, daemon.errors());
  REQUIRE_THAT(closed, Catch::Contains(whose + "seconds="));
  REQUIRE_THAT(
      closed,
      Catch::Matches(".* seconds=[0-9]+\\.[0-9]{6} batches=3 images=5 bad=0 refused=2 tensor_bytes=[1-9][0-9]* "
                     "encoded_bytes=[1-9][0-9]* lane_seconds=[0-9]+\\.[0-9]{6} "
                     "job=\"train\" cpu_seconds=[0-9.]+ .* waited_seconds=[0-9.]+ waits=3 datasets=2 dataset=.*"));
  REQUIRE(closed.ends_with("dataset=\"" + folder.path() + "/a \\\"b\\\" c\" dataset=\"/elsewhere\""));
}

TEST_CASE("the log says of what is kept what the settings let be kept", "[system]") {
  for (const auto& [settings, line] :
       {std::pair{"", "info seek indexes, packed forms and tensors are kept in memory"},
        std::pair{"packed = false\n", "info seek indexes and tensors are kept in memory"},
        std::pair{"tensors = false\n", "info seek indexes and packed forms are kept in memory"},
        std::pair{"packed = false\ntensors = false\n", "info seek indexes are kept in memory"}}) {
    const Daemon daemon({.cache = settings});
    CAPTURE(daemon.errors());
    REQUIRE_FALSE(line_with(daemon, {line}).empty());
  }
}

TEST_CASE("a session that is there when the daemon stops has its line, too", "[system]") {
  const Daemon daemon({});
  const Session session = need(open_named(daemon, "train"));

  daemon.kill(SIGTERM);

  REQUIRE_THAT(line_with(daemon, {"info session 1 ended with the daemon: session=1 "}),
               Catch::Contains(" name=\"train\" ") && Catch::Contains(" batches=0 images=0 bad=0 "));
}

TEST_CASE("the log warns of a session whose client was killed", "[system]") {
  const TempFolder folder;
  const auto paths = write_image_folder(folder.path(), {.images = 4});
  const Daemon daemon({.roots = {folder.path()}});
  const Process client = daemon.client("handoff", {"opened"});
  REQUIRE(client.wait_for("at opened"));

  client.kill(SIGKILL);

  REQUIRE_THAT(line_with(daemon, {"warning session 1 reclaimed, for its client died or was cut off: "}),
               Catch::Contains(" pid=" + std::to_string(client.pid()) + ' '));
}

TEST_CASE("the log warns of a session that is refused, with the budget", "[system]") {
  const Daemon daemon({.limits = "sessions = 1\n"});
  const Session first = need(open_named(daemon));

  REQUIRE_FALSE(open_named(daemon, "second"));

  REQUIRE_THAT(line_with(daemon, {"warning no session for " + kMe + " (\"second\")"}),
               Catch::Contains("limits.sessions"));
}

TEST_CASE("a lost device is an error in the log, once", "[system]") {
  const TempFolder folder;
  const auto paths = write_image_folder(folder.path(), {.images = 8, .only_jpeg = true});
  const Daemon daemon({.roots = {folder.path()}, .fake = "lose_after=1"});
  Session session = need(daemon.connect().open_session({.slots = 2, .batch = 8, .recipe = Recipe::train(32)}));
  BatchRequest request{.backend = "fake"};
  for (const std::string& path : paths) request.samples.push_back({.source = Path{path}});
  for (int i = 0; i < 2; ++i) static_cast<void>(session.submit(request));

  REQUIRE_FALSE(line_with(daemon, {"error backend fake has lost its device"}).empty());
  { const Session closed = std::move(session); }
  REQUIRE_FALSE(line_with(daemon, {"session 1 closed"}).empty());
  REQUIRE(count_of(daemon.errors(), "error backend fake has lost its device") == 1);
}

TEST_CASE("what took longer than daemon.slow_milliseconds is told of by a name that steers no terminal", "[system]") {
  const TempFolder folder;
  const auto paths =
      write_image_folder(folder.path(), {.images = 1, .min_side = 1'500, .max_side = 1'600, .only_jpeg = true});
  const std::string name = folder / "red\x1b[31m.jpg";
  REQUIRE(std::rename(paths[0].c_str(), name.c_str()) == 0);
  const Daemon daemon({.roots = {folder.path()}, .daemon = "slow_milliseconds = 1\n"});
  Session session = need(daemon.connect().open_session({.slots = 1, .batch = 1, .recipe = Recipe::train(32)}));

  static_cast<void>(need(session.submit({.samples = {{.source = Path{name}}}})));

  REQUIRE_THAT(line_with(daemon, {"warning slow: "}),
               Catch::Contains("red\\x1b[31m.jpg took ") && Catch::Contains(" ms, for session 1"));
}

TEST_CASE("debug shows the settings in force, info does not", "[system]") {
  const Daemon quiet({.log_level = "info"});
  const Daemon loud({.log_level = "debug"});

  REQUIRE_FALSE(line_with(loud, {"debug setting daemon.log_level = \"debug\""}).empty());
  REQUIRE_FALSE(line_with(loud, {"debug setting limits.pixels = 178956970"}).empty());
  REQUIRE_FALSE(line_with(quiet, {"info backend cpu: 2 lanes of "}).empty());
  REQUIRE(quiet.errors().find("setting limits.pixels") == std::string::npos);
}

TEST_CASE("a user who opens sessions without end does not fill the log", "[system]") {
  const Daemon daemon({});

  for (int i = 0; i < 70; ++i) static_cast<void>(need(open_named(daemon)));

  REQUIRE_FALSE(line_with(daemon, {"(further lines about this user are left out for now)"}).empty());
}

}  // namespace
}  // namespace millrace
