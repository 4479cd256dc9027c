// `millrace top`: the screen of a real daemon with a session, without a terminal, and without a daemon.
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/support/host/process.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/command.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"

namespace millrace {
namespace {

TEST_CASE("top --once prints who has sessions, with their slots and rates", "[system]") {
  const TempFolder folder;
  write_image_folder(folder.path(), {.images = 6, .only_jpeg = true});
  const Daemon daemon({.roots = {folder.path()}});
  Session session =
      need(daemon.connect().open_session({.name = "train\u5341", .slots = 3, .batch = 2, .recipe = Recipe::train(32)}));
  const Dataset dataset = need(session.open_dataset(folder.path()));
  auto epoch = session.epoch(dataset);
  const auto held = need(epoch.next());
  REQUIRE(held);

  const Ran ran = run({"millrace", "top", "--once", "--every", "0.1", "--socket", daemon.socket()});

  CAPTURE(ran.output, ran.errors);
  REQUIRE(ran.status == 0);
  REQUIRE_THAT(ran.output, Catch::StartsWith("millraced ") && Catch::Contains("   1 session   ") &&
                               Catch::Contains("\ndevices  cpu: ") && Catch::Contains("\ncache ") &&
                               Catch::Contains("\nmemory ") && Catch::Contains("\n  ID SESSION "));
  const std::string row = ran.output.substr(ran.output.find("\n   1 ") + 1);
  REQUIRE_THAT(row, Catch::StartsWith("   1 train\u5341 ") && Catch::Contains("/3 "));
}

TEST_CASE("top --once of a daemon without sessions says so", "[system]") {
  const Daemon daemon({});
  const Ran ran = run({"millrace", "top", "--once", "--every", "0.1", "--socket", daemon.socket()});
  CAPTURE(ran.output, ran.errors);
  REQUIRE(ran.status == 0);
  REQUIRE_THAT(ran.output, Catch::Contains("   0 sessions   ") && Catch::EndsWith("No session is open.\n"));
}

TEST_CASE("top without a terminal says what to do", "[system]") {
  const Daemon daemon({});
  const Ran ran = run({"millrace", "top", "--socket", daemon.socket()});
  CAPTURE(ran.output, ran.errors);
  REQUIRE(ran.status == 1);
  REQUIRE(ran.output.empty());
  REQUIRE_THAT(ran.errors, Catch::StartsWith("millrace: top needs a terminal") && Catch::Contains("--once"));
}

TEST_CASE("top on a terminal that cannot move its cursor says what to do", "[system]") {
  const Daemon daemon({});
  const Process top = Process::spawn(
      {.argv = {"script", "-qec", "env TERM=dumb " + bin_folder() + "/millrace top --socket " + daemon.socket(),
                "/dev/null"}});
  CHECK(top.wait() == 1);
  CHECK_THAT(top.output(), Catch::Contains("knows how to draw") && Catch::Contains("--once"));
}

}  // namespace
}  // namespace millrace
