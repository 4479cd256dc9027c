// The simulated CUDA driver: which devices there are, and what they are like.
#include "tests/support/cuda_driver/uuid.h"
#include "tests/support/host/temp_folder.h"
#include "tests/unit/support/cuda_driver/rig.h"

namespace millrace {
namespace {

TEST_CASE("a simulated device is what the environment says", "[cuda][driver]") {
  CHECK(play({"device"}).output ==
        "Simulated GPU 0 at 0000:01:00.0, 4096 MiB\n9.0, 4 multiprocessors, sharing 1\ndevice 1: 101\n"
        "a number as a handle: 101\nwithout a context: 201\n");
  const Played played = play({"device"}, {{"SIM_CUDA_DEVICES", "2"},
                                          {"SIM_CUDA_VRAM_MIB", "1000"},
                                          {"SIM_CUDA_CAPABILITY", "120"},
                                          {"SIM_CUDA_MULTIPROCESSORS", "132"},
                                          {"SIM_CUDA_VMM", "0"}});
  INFO(played);
  CHECK(played.output ==
        "Simulated GPU 0 at 0000:01:00.0, 1000 MiB\n12.0, 132 multiprocessors, sharing 0\ndevice 1: 0\n"
        "a number as a handle: 101\nwithout a context: 201\n");
}

TEST_CASE("a number that is none ends the process", "[cuda][driver]") {
  const Played played = play({"device"}, {{"SIM_CUDA_DEVICES", "two"}});

  CHECK(played.status != 0);
  CHECK(played.reports("simulated CUDA: SIM_CUDA_DEVICES is no number: two\n"));
}

// The devices of four that a process sees, by their indices on the host.
std::string seen_of_four(const std::string& visible) {
  return play({"visible"}, {{"SIM_CUDA_DEVICES", "4"}, {"CUDA_VISIBLE_DEVICES", visible}}).output;
}

TEST_CASE("a process sees the devices that CUDA_VISIBLE_DEVICES names, in its order", "[cuda][driver]") {
  const auto none = Catch::StartsWith("NVIDIA's driver: cuInit: CUDA_ERROR_NO_DEVICE (100)");
  CHECK(play({"visible"}, {{"SIM_CUDA_DEVICES", "4"}}).output == "0 1 2 3 ");
  CHECK(seen_of_four("2,0") == "2 0 ");
  CHECK(seen_of_four("1, 3") == "1 3 ");
  CHECK(seen_of_four(sim::uuid_text(3)) == "3 ");
  CHECK(seen_of_four("1," + sim::uuid_text(2).substr(0, 12)) == "1 2 ");
  CHECK_THAT(seen_of_four(""), none);
  CHECK_THAT(seen_of_four("-1"), none);
  CHECK_THAT(seen_of_four("GPU-"), none);
  CHECK_THAT(seen_of_four("MIG-" + sim::uuid_text(0).substr(4)), none);
  CHECK(seen_of_four("1,4,0") == "1 ");
  CHECK(seen_of_four("0,none,1") == "0 ");
  CHECK(seen_of_four("3,1,3,0") == "3 1 ");
  CHECK(seen_of_four("2," + sim::uuid_text(2)) == "2 ");
}

TEST_CASE("a device is the same one for all processes, whatever they call it", "[cuda][driver]") {
  const TempFolder folder;
  Environment environment{{"SIM_CUDA_CONTROL", folder.path() + "/control"}, {"SIM_CUDA_DEVICES", "2"}};
  const Process control = Process::spawn({.argv = {tests_folder() + "/millrace_cuda_sim", "lose", "1", "999"},
                                          .env = environment,
                                          .user = {},
                                          .folder = {}});
  REQUIRE(control.wait() == 0);
  environment.emplace_back("CUDA_VISIBLE_DEVICES", "0");
  CHECK(play({"visible"}, environment).output == "0 ");
  environment.back().second = "1";
  CHECK(play({"visible"}, environment).output == "cuDevicePrimaryCtxRetain: 999\n");
}

}  // namespace
}  // namespace millrace
