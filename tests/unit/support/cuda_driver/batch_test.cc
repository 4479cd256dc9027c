// The simulated CUDA driver: the project's kernels on it, and memory that processes share.
#include <csignal>
#include <fstream>

#include "tests/support/host/temp_folder.h"
#include "tests/unit/support/cuda_driver/rig.h"

namespace millrace {
namespace {

TEST_CASE("a batch through both kernels is the host executor's, whatever the delays", "[cuda][driver]") {
  for (const char* seed : {"1", "2", "3"}) {
    const Played played = play({"batch"}, {{"SIM_CUDA_SEED", seed}});

    INFO(played);
    CHECK(played.status == 0);
    CHECK(played.output == "6 planned, done, tensors equal\n");
    CHECK(played.errors.empty());
  }
}

TEST_CASE("a batch whose files nothing waits for is reported", "[cuda][driver]") {
  for (const char* seed : {"1", "2", "3"}) {
    const Played played = play({"batch", "forget"}, {{"SIM_CUDA_SEED", seed}});

    INFO(played);
    CHECK(played.reports("simulated CUDA: race: "));
    CHECK(played.reports("millrace_tokenise (stream 1)"));
  }
}

TEST_CASE("kernels that take no time say that all is done, and compute nothing", "[cuda][driver]") {
  CHECK(play({"batch"}, {{"SIM_CUDA_INSTANT", "1"}}).output == "6 planned, done, tensors untouched\n");
}

// The path of the descriptor that the process shares.
std::string shared_by(const Process& process) {
  const std::optional<std::string> line = process.wait_for("at /proc/");
  REQUIRE(line);
  return line->substr(3);
}

TEST_CASE("memory that a process exports is another's that imports its descriptor", "[cuda][driver]") {
  const Process owner = start_scene({"share"});

  const Played writer = play({"use shared", shared_by(owner), "write"});

  INFO(writer);
  CHECK(writer.prints("holds 0x21"));
  CHECK(writer.prints("synchronise: 0"));
  REQUIRE(owner.say(""));
  CHECK(end_of(owner).prints("holds 0x43"));
}

TEST_CASE("an importer that maps memory for reading writes to an illegal address, of its own context",
          "[cuda][driver]") {
  const Process owner = start_scene({"share"});

  const Played reader = play({"use shared", shared_by(owner), "read"});

  INFO(reader);
  CHECK(reader.prints("holds 0x21"));
  CHECK(reader.prints("synchronise: 700"));
  REQUIRE(owner.say(""));
  CHECK(end_of(owner).prints("holds 0x21"));
}

TEST_CASE("a killed process's memory is an importer's still, and no longer charged", "[cuda][driver]") {
  const TempFolder folder;
  const Environment environment{{"SIM_CUDA_CONTROL", folder.path() + "/control"}};
  const Process owner = start_scene({"share"}, environment);
  const Process importer = start_scene({"use shared", shared_by(owner), "watch"}, environment);
  REQUIRE(importer.wait_for("used 520 MiB"));  // two contexts and 8 MiB

  owner.kill(SIGKILL);
  REQUIRE(owner.wait() == 128 + SIGKILL);
  REQUIRE(importer.say(""));

  const Played played = end_of(importer);
  INFO(played);
  CHECK(played.prints("still holds 0x21"));
  CHECK(played.prints("used 256 MiB"));
}

TEST_CASE("a descriptor of anything else is not imported", "[cuda][driver]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/file";
  std::ofstream(path) << "no memory of a device";

  CHECK(play({"use shared", path, "read"}).output == "import: 1\n");
}

TEST_CASE("an import fails where that is ordered", "[cuda][driver]") {
  const Process owner = start_scene({"share"});

  CHECK(play({"use shared", shared_by(owner), "read"}, {{"SIM_CUDA_FAULTS", "import:*:1=2"}}).output == "import: 2\n");
}

TEST_CASE("addresses are given back once, and not while memory is mapped there", "[cuda][driver]") {
  CHECK(play({"free reserved"}).output == "free while mapped: 1\nunmap: 0\nfree: 0\nfree twice: 1\n");
}

TEST_CASE("memory by descriptor holds neither zeros nor what earlier memory held", "[cuda][driver]") {
  CHECK(play({"made again"}).output == "holds 0xc7\nholds 0xc7\n");
}

TEST_CASE("memory that is unmapped under a stream is an illegal address, which sticks", "[cuda][driver]") {
  const Played early = play({"unmap early", "at once"});
  INFO(early);
  CHECK(early.output == "unmap: 0\nsynchronise: 700\nfree: 700\n");
  CHECK(early.errors == "simulated CUDA: memory unmapped that streams still use\n");

  const Played late = play({"unmap early", "waits"});
  INFO(late);
  CHECK(late.output == "unmap: 0\nsynchronise: 0\nfree: 0\n");
  CHECK(late.errors.empty());
}

TEST_CASE("a device without virtual memory management shares none", "[cuda][driver]") {
  CHECK(play({"free reserved"}, {{"SIM_CUDA_VMM", "0"}}).output == "cuMemCreate: 801\n");
}

}  // namespace
}  // namespace millrace
