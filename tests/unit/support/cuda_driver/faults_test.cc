// The simulated CUDA driver: failures to order, full and lost devices, hosts without a driver.
#include <filesystem>
#include <fstream>

#include "tests/support/host/temp_folder.h"
#include "tests/support/skip.h"
#include "tests/unit/support/cuda_driver/rig.h"

namespace millrace {
namespace {

Played steps(const std::string& faults, bool launches = false) {
  std::vector<std::string> arguments{"steps"};
  if (launches) arguments.emplace_back("launch");
  return play(arguments, {{"SIM_CUDA_FAULTS", faults}});
}

TEST_CASE("an error of a kernel or a copy comes out of what is called next, and of all that follows",
          "[cuda][driver]") {
  for (const std::string error : {"700", "719", "999"}) {
    const Played played = steps("launch:millrace_reconstruct:1=" + error, true);
    INFO(played);
    CHECK(played.output == "alloc: 0\nregister: 0\ncopy: 0\nlaunch: 0\nsynchronise: " + error + "\nalloc: " + error +
                               "\ninfo: " + error + "\n");
  }
  const Played copy = steps("copy:HtoD:1=214");
  INFO(copy);
  CHECK(copy.output == "alloc: 0\nregister: 0\ncopy: 0\nsynchronise: 214\nalloc: 214\ninfo: 214\n");
}

TEST_CASE("out of memory, and of registered memory, passes", "[cuda][driver]") {
  CHECK(steps("alloc:*:1=2").output == "alloc: 2\nregister: 0\nsynchronise: 0\nalloc: 0\ninfo: 0\n");
  CHECK(steps("alloc:cuMemAlloc:2=2").output == "alloc: 0\nregister: 0\ncopy: 0\nsynchronise: 0\nalloc: 2\ninfo: 0\n");
  CHECK(steps("register:*:1=2").output == "alloc: 0\nregister: 2\ncopy: 0\nsynchronise: 0\nalloc: 0\ninfo: 0\n");
  CHECK(steps("launch:*:1=2", true).output ==
        "alloc: 0\nregister: 0\ncopy: 0\nlaunch: 2\nsynchronise: 0\nalloc: 0\ninfo: 0\n");
}

TEST_CASE("a fault is of the operation, the name and the call that it says", "[cuda][driver]") {
  const std::string fine = "alloc: 0\nregister: 0\ncopy: 0\nsynchronise: 0\nalloc: 0\ninfo: 0\n";
  for (const char* other : {"", "copy:HtoD:2=214", "copy:DtoH:1=214", "launch:HtoD:1=700", "alloc:cuMemCreate:1=2"})
    CHECK(steps(other).output == fine);
}

TEST_CASE("faults that cannot be read end the process", "[cuda][driver]") {
  const Played played = steps("launch=700");

  INFO(played);
  CHECK(played.status != 0);
  CHECK(played.reports("no rule of SIM_CUDA_FAULTS: launch=700"));
}

TEST_CASE("an operation takes as long as it is said to, and a copy moves as much", "[cuda][driver]") {
  const std::string fine = "5000 bytes\n";
  CHECK(play({"copy slowly"}, {{"SIM_CUDA_DURATIONS", "HtoD=200000"}}).output == "after 200 ms or more\n" + fine);
  CHECK(play({"copy slowly"}, {{"SIM_CUDA_DURATIONS", "DtoH=1;HtoD=0/0.025;"}}).output ==
        "after 200 ms or more\n" + fine);
  CHECK(play({"copy slowly"}, {{"SIM_CUDA_COPIED", "100"}, {"SIM_CUDA_DELAY_US", "0"}}).prints("100 bytes"));

  const Played played = play({"copy slowly"}, {{"SIM_CUDA_DURATIONS", "HtoD"}});

  INFO(played);
  CHECK(played.status != 0);
  CHECK(played.reports("no duration of SIM_CUDA_DURATIONS: HtoD"));
}

TEST_CASE("a full device refuses, and takes again what was freed", "[cuda][driver]") {
  const Played played = play({"fill"}, {{"SIM_CUDA_VRAM_MIB", "350"}, {"SIM_CUDA_CONTEXT_MIB", "256"}});

  INFO(played);
  CHECK(played.output == "more: 2\none freed: 0\n5 pieces, 30 MiB free of 350\n");
  CHECK(play({"fill"}, {{"SIM_CUDA_VRAM_MIB", "100"}}).output == "cuDevicePrimaryCtxRetain: 2\n");
}

TEST_CASE("a kernel that hangs holds up its stream alone, and not the process's end", "[cuda][driver]") {
  const Played played = play_soon({"hang"}, {{"SIM_CUDA_FAULTS", "launch:millrace_reconstruct:1=hang"}});

  INFO(played);
  CHECK(played.status == 0);
  CHECK(played.output == "launch: 0\nevent: 600\nother stream: 0\ndestroy: 0\n");
}

TEST_CASE("a lost device is lost for every process, and for who waits", "[cuda][driver]") {
  const TempFolder folder;
  const Environment environment{{"SIM_CUDA_CONTROL", folder.path() + "/control"}};
  const Process first = start_scene({"until lost"}, environment), second = start_scene({"until lost"}, environment);
  const Process waiting = start_scene({"wait until lost"}, environment);
  for (const Process* process : {&first, &second, &waiting}) REQUIRE(process->wait_for("well"));

  const Process control = Process::spawn({.argv = {tests_folder() + "/millrace_cuda_sim", "lose", "0", "999"},
                                          .env = environment,
                                          .user = {},
                                          .folder = {}});

  REQUIRE(control.wait() == 0);
  CHECK(end_of(first).output == "well: 0\nlost: 999\ninfo: 999\n");
  CHECK(end_of(second).output == "well: 0\nlost: 999\ninfo: 999\n");
  CHECK(end_of(waiting).output == "well\nlost: 999\n");
  CHECK(play({"fill"}, environment).output == "cuDevicePrimaryCtxRetain: 999\n");
  CHECK(play({"nvml"}, environment).prints("name: 15"));
}

TEST_CASE("NVML says what a device is told to be like, and what processes use of it", "[cuda][driver]") {
  const TempFolder folder;
  const Environment environment{{"SIM_CUDA_CONTROL", folder.path() + "/control"}};
  const Process control =
      Process::spawn({.argv = {tests_folder() + "/millrace_cuda_sim", "state", "0", "312000", "54", "87"},
                      .env = environment,
                      .user = {},
                      .folder = {}});
  REQUIRE(control.wait() == 0);
  const Process user = start_scene({"until lost"}, environment);
  REQUIRE(user.wait_for("well"));

  const Played played = play({"nvml"}, environment);

  INFO(played);
  CHECK(played.output == "name: 0\n312000 mW, 54 C, 87 %, 256 MiB used of 4096\n");
}

// What loading a fat binary of those entries answers on that device.
std::string load_of(std::vector<std::string> entries, const char* capability, const char* driver = "13000") {
  entries.insert(entries.begin(), {"image", "fatbin"});
  const std::string said =
      play(entries, {{"SIM_CUDA_CAPABILITY", capability}, {"SIM_CUDA_DRIVER_VERSION", driver}}).output;
  return said.substr(0, said.find('\n'));
}

TEST_CASE("a module is a fat binary, or says that it is simulated", "[cuda][driver]") {
  CHECK(play({"image", "fatbin", "elf:90"}).output == "load: 0\nfunction: 500\n");
  CHECK(play({"image", "millrace simulated image, of anything"}).output == "load: 0\nfunction: 500\n");
  CHECK(play({"image", "millrace simulated image"}, {{"SIM_CUDA_CAPABILITY", "75"}}).output == "load: 209\n");
  CHECK(play({"image", "another text"}).output == "load: 200\n");
  CHECK(load_of({"elf:80", "lies"}, "90") == "load: 200");
}

TEST_CASE("a fat binary has machine code of the device's major number, or PTX to compile", "[cuda][driver]") {
  const std::vector<std::string> ours{"elf:80", "elf:90", "elf:100", "ptx:100:9.0"};
  for (const char* taken : {"80", "86", "90", "100", "103", "120"}) CHECK(load_of(ours, taken) == "load: 0");
  CHECK(load_of(ours, "75") == "load: 209");
  CHECK(load_of({"elf:86"}, "80") == "load: 209");
  CHECK(load_of({"elf:80", "elf:100"}, "90") == "load: 209");
  CHECK(load_of({"elf:80", "ptx:80:7.0"}, "90") == "load: 0");
  CHECK(load_of({}, "90") == "load: 209");
}

TEST_CASE("a driver compiles no PTX that is newer than it, and needs none where there is machine code",
          "[cuda][driver]") {
  CHECK(load_of({"elf:90", "ptx:80:9.0"}, "120", "12090") == "load: 222");
  CHECK(load_of({"elf:90", "ptx:80:9.0"}, "120", "13000") == "load: 0");
  CHECK(load_of({"elf:90", "ptx:80:9.0"}, "90", "12090") == "load: 0");
  CHECK(load_of({"ptx:80:9.0", "ptx:80:8.5"}, "90", "12050") == "load: 0");
  CHECK(load_of({"ptx:80:8.6"}, "90", "12060") == "load: 222");
  CHECK(load_of({"ptx:80:8.6"}, "90", "12070") == "load: 0");
  CHECK(load_of({"ptx:80:7.8"}, "90", "11070") == "load: 222");
  CHECK(load_of({"ptx:100:9.0"}, "90", "12000") == "load: 209");
}

TEST_CASE("a driver that is there is found, as it is told to be", "[cuda][driver]") {
  CHECK(play({"load"}).output == "version 13000, 1 devices\n");
  CHECK(play({"load"}, {{"SIM_CUDA_DRIVER_VERSION", "12020"}, {"SIM_CUDA_DEVICES", "3"}}).output ==
        "version 12020, 3 devices\n");
}

TEST_CASE("hosts without a GPU, or with the toolkit's stub alone, are told apart", "[cuda][driver]") {
  CHECK_THAT(play({"load"}, {{"SIM_CUDA_DEVICES", "0"}}).output,
             Catch::StartsWith("NVIDIA's driver: cuInit: CUDA_ERROR_NO_DEVICE (100): no GPU is visible"));
  CHECK(play({"load"}, {{"SIM_CUDA_FAULTS", "init:*:1=34"}})
            .prints("NVIDIA's driver: libcuda.so.1 is the CUDA toolkit's stub, which is for linking; take it out of "
                    "LD_LIBRARY_PATH"));
}

TEST_CASE("a driver that cannot begin says why, and what to do", "[cuda][driver]") {
  const std::pair<const char*, std::string> results[] = {
      {"802", "CUDA_ERROR_SYSTEM_NOT_READY (802): the host is not ready yet"},
      {"803", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803): the driver's library and its kernel module"},
      {"804", "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE (804): the libcuda of the package cuda-compat"},
      {"999", "CUDA_ERROR_UNKNOWN (999): /dev/nvidia-uvm may be missing"}};
  for (const auto& [result, text] : results)
    CHECK_THAT(play({"load"}, {{"SIM_CUDA_INIT_RESULT", result}}).output,
               Catch::StartsWith("NVIDIA's driver: cuInit: " + text));
  CHECK(play({"fill"}, {{"SIM_CUDA_INIT_RESULT", "46"}}).output == "cuDevicePrimaryCtxRetain: 46\n");
}

// What the scene prints before a file is there, and after.
std::string begun_late(Environment environment) {
  const TempFolder folder;
  const std::string file = folder.path() + "/ready";
  environment.emplace_back("SIM_CUDA_INIT_UNTIL", file);
  const Process process = start_scene({"init"}, environment);
  REQUIRE(process.wait_for("cuDevicePrimaryCtxRetain"));
  std::ofstream(file).close();
  REQUIRE(process.say(""));
  return end_of(process).output;
}

TEST_CASE("a host is ready once a file is there, and its devices may be another process's until then",
          "[cuda][driver]") {
  const std::string well = "cuInit: 0\ncuDeviceGetCount: 0\ncuDeviceGet: 0\ncuDevicePrimaryCtxRetain: 0\n";
  CHECK(begun_late({{"SIM_CUDA_INIT_RESULT", "802"}}) ==
        "cuInit: 802\ncuDeviceGetCount: 3\ncuDeviceGet: 3\ncuDevicePrimaryCtxRetain: 3\n" + well);
  CHECK(begun_late({{"SIM_CUDA_INIT_RESULT", "46"}}) ==
        "cuInit: 0\ncuDeviceGetCount: 0\ncuDeviceGet: 0\ncuDevicePrimaryCtxRetain: 46\n" + well);
}

TEST_CASE("a driver may take its time to begin", "[cuda][driver]") {
  CHECK(begun_late({{"SIM_CUDA_INIT_MS", "200"}}).starts_with("cuInit: 0\nafter 200 ms or more\n"));
}

TEST_CASE("a driver that lacks a function is too old", "[cuda][driver]") {
  const Played played = play({"load"}, {{"LD_LIBRARY_PATH", tests_folder() + "/old_cuda_driver"}});

  INFO(played);
  CHECK(played.status == 4);
  CHECK(played.output ==
        "NVIDIA's driver: it has no function cuDriverGetVersion; install one of version 525 or newer\n");
}

TEST_CASE("a host without a driver, or with a broken one, is told so", "[cuda][driver]") {
  const TempFolder folder;
  const Environment environment{{"LD_LIBRARY_PATH", folder.path()}};
  const Played none = play({"load"}, environment);
  std::ofstream(folder.path() + "/libcuda.so.1").close();
  const Played broken = play({"load"}, environment);

  INFO(none << broken);
  CHECK(broken.status == 4);
  CHECK(broken.output.starts_with("NVIDIA's driver: "));
  CHECK(broken.output.find("libcuda.so.1: file too short") != std::string::npos);
  if (none.status == 0) return skip_loudly("a host without NVIDIA's driver: this one has it");
  CHECK(none.status == 4);
  CHECK(none.output.find("libcuda.so.1: cannot open shared object file") != std::string::npos);
}

}  // namespace
}  // namespace millrace
