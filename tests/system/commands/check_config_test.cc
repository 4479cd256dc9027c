// What `millraced` says of its settings without starting: what they amount to, what clients may have, what is wrong.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "proto/base/bytes.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/command.h"

namespace millrace {
namespace {

TEST_CASE("--check-config prints the settings that a good file amounts to", "[system]") {
  TempFolder folder;
  write_file(folder / "good.toml",
             "[daemon]\nsocket = \"" + folder / "x.sock" + "\"\n[files]\nroots = [\"" + folder.path() + "\"]\n");

  const Ran ran = run({"millraced", "--config", folder / "good.toml", "--check-config"});

  CAPTURE(ran.output, ran.errors);
  REQUIRE(ran.status == 0);
  REQUIRE_THAT(ran.output, Catch::Contains(folder / "x.sock") && Catch::Contains("[limits]"));
  write_file(folder / "again.toml", ran.output);
  REQUIRE(run({"millraced", "--config", folder / "again.toml", "--check-config"}).output == ran.output);
}

TEST_CASE("--check-config tells what clients may have, and of which setting each bound is", "[system]") {
  TempFolder folder;
  const std::string settings =
      "[memory]\nrequests = \"32 MB\"\nuser_percent = 50\n[limits]\nepochs = 7\n[daemon]\nsocket = \"";
  write_file(folder / "own.toml", settings + folder / "x.sock" + "\"\n");
  write_file(folder / "open.toml", settings + "/run/x.sock\"\n");

  const Ran own = run({"millraced", "--config", folder / "own.toml", "--check-config"});
  const Ran open = run({"millraced", "--config", folder / "open.toml", "--check-config"});

  CAPTURE(own.output, open.output);
  REQUIRE(own.status == 0);
  CHECK_THAT(own.output, Catch::Contains("# memory for requests                    32.0 MB     16.0 MB          -  "
                                         "memory.requests, memory.user_percent\n"));
  CHECK_THAT(
      own.output,
      Catch::Contains("# epochs                                       -           -          7  limits.epochs\n"));
  CHECK_THAT(own.output, Catch::Contains("No other user can reach the socket"));
  CHECK_THAT(open.output, Catch::Contains("16.0 MB *") && Catch::Contains("seven times what is free"));
}

TEST_CASE("--memory-drop-in prints a limit for the service manager that all budgets fit into", "[system]") {
  TempFolder folder;
  write_file(folder / "good.toml",
             "[memory]\nsegments = \"100 MiB\"\ndecoding = \"100 MiB\"\nrequests = \"100 MiB\"\nencoded_in_flight = "
             "\"10 MiB\"\n[cache]\nmemory = \"100 MiB\"\n[lanes]\ncpu = 2\n");

  const Ran ran = run({"millraced", "--config", folder / "good.toml", "--memory-drop-in"});

  CAPTURE(ran.output, ran.errors);
  REQUIRE(ran.status == 0);
  const std::uint64_t sum = (400_MiB + 30_MiB + 1280_MiB + 80_MiB + 160_MiB).count;
  CHECK_THAT(ran.output, Catch::Contains("\n[Service]\n"));
  CHECK_THAT(ran.output, Catch::Contains("\nMemoryHigh=" + std::to_string(sum) + "\n"));
  CHECK_THAT(ran.output, Catch::Contains("\nMemoryMax=" + std::to_string(sum + sum / 16) + "\n"));
}

TEST_CASE("--check-config names file, line and key of every mistake", "[system]") {
  TempFolder folder;
  write_file(folder / "bad.toml", std::string("[daemon]\nsocket = 7\n\n[limits]\npixels = -3\nslotz = 4\n"));

  const Ran ran = run({"millraced", "--config", folder / "bad.toml", "--check-config"});

  CAPTURE(ran.output, ran.errors);
  REQUIRE(ran.status == 2);
  REQUIRE_THAT(ran.errors, Catch::Contains("bad.toml:2: daemon.socket") &&
                               Catch::Contains("bad.toml:5: limits.pixels") &&
                               Catch::Contains("bad.toml:6: limits.slotz"));
}

TEST_CASE("--check-config of a file that is no TOML names file and line", "[system]") {
  TempFolder folder;
  write_file(folder / "broken.toml", std::string("[daemon]\nsocket = \n"));

  const Ran ran = run({"millraced", "--config", folder / "broken.toml", "--check-config"});

  REQUIRE(ran.status == 2);
  REQUIRE_THAT(ran.errors, Catch::Contains("broken.toml:2"));
}

TEST_CASE("a socket's path that is too long is refused with the limit", "[system]") {
  TempFolder folder;

  const Ran ran =
      run({"millraced", "--socket", folder / std::string(100, 's'), "--root", folder.path(), "--check-config"});

  REQUIRE(ran.status == 2);
  REQUIRE_THAT(ran.errors, Catch::Contains("107") || Catch::Contains("99"));
}

}  // namespace
}  // namespace millrace
