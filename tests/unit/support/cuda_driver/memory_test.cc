// The simulated CUDA driver: copies, pinned memory, addresses, order.
#include <csignal>

#include "proto/base/sanitized.h"
#include "tests/unit/support/cuda_driver/rig.h"

namespace millrace {
namespace {

TEST_CASE("what is copied to a simulated device and back is what it was", "[cuda][driver]") {
  for (const char* seed : {"1", "2"}) {
    const Played played = play({"round trip"}, {{"SIM_CUDA_SEED", seed}});

    INFO(played);
    CHECK(played.status == 0);
    CHECK(played.output == "equal, fresh memory holds 0xc7\n");
    CHECK(played.errors.empty());
  }
}

TEST_CASE("host code that uses a device pointer dies, with the address in one line", "[cuda][driver]") {
  const Played played = play({"dereference"});

  INFO(played);
  const std::string address = played.output.substr(0, played.output.find('\n'));
  CHECK(address.size() > 4);
  CHECK(played.reports("simulated CUDA: host code used the device address " + address + " as a pointer\n"));
  CHECK(played.output.find("read") == std::string::npos);
  CHECK(played.status != 0);
  if (!kSanitized) CHECK(played.status == 128 + SIGSEGV);
}

TEST_CASE("registered memory is read when the copy's turn comes, other memory at once and with a line",
          "[cuda][driver]") {
  const Played played = play({"early reuse"});

  INFO(played);
  CHECK(played.output == "2, 0xdb before\n1, 0xdb before\n");
  CHECK(played.errors == "simulated CUDA: an asynchronous copy from memory that is not registered\n");
}

TEST_CASE("memory is freed and unregistered once streams have done with it", "[cuda][driver]") {
  for (const char* user : {"memset", "copy", "kernel"}) {
    const Played played = play({"let go early", user}, {{"SIM_CUDA_INSTANT", "1"}});
    INFO(user << ": " << played);
    CHECK(played.output == "let go: 0\nsynchronise: 0\n");
    CHECK(played.errors.empty());
  }
  for (const char* seed : {"1", "2", "3"}) {
    const Played anew = play({"registered anew"}, {{"SIM_CUDA_SEED", seed}});
    INFO(anew);
    CHECK(anew.output == "0xc7\n0xc7\n");
    CHECK(anew.errors.empty());  // no race, either
  }
}

TEST_CASE("freed memory, and what lies behind an allocation, are illegal addresses, which stick", "[cuda][driver]") {
  CHECK(play({"use after free"}).output == "memset: 0\nsynchronise: 700\nalloc: 700\n");
  CHECK(play({"overrun"}).output == "copy: 0\nsynchronise: 700\n");
}

TEST_CASE("a kernel that leaves its memory is an illegal address, and no leak", "[cuda][driver]") {
  const Played played = play({"kernel overrun"});

  INFO(played);
  CHECK(played.status == 0);
  CHECK(played.output == "launch: 0\nsynchronise: 700\n");
}

TEST_CASE("two streams that nothing orders are reported, whatever the delays", "[cuda][driver]") {
  for (const char* seed : {"1", "2", "3", "4"}) {
    const Environment environment{{"SIM_CUDA_SEED", seed}, {"SIM_CUDA_DELAY_US", "100"}};
    const Played played = play({"two streams"}, environment);

    INFO(seed << ": " << played);
    CHECK(played.reports("simulated CUDA: race: "));
    CHECK(played.reports("100000 bytes: nothing orders them\n"));
    for (const char* order : {"event", "host", "function"}) {
      const Played ordered = play({"two streams", order}, environment);
      INFO(order << ": " << ordered);
      CHECK(ordered.output == "done\n");
      CHECK(ordered.errors.empty());
    }
  }
}

TEST_CASE("two streams that write the same registered memory are reported", "[cuda][driver]") {
  const Played played = play({"same target"});

  INFO(played);
  CHECK(played.reports("simulated CUDA: race: DtoH (stream "));
}

TEST_CASE("a race is not looked for where that is not wanted", "[cuda][driver]") {
  CHECK(play({"two streams"}, {{"SIM_CUDA_RACES", "0"}}).errors.empty());
}

TEST_CASE("the driver is not to be called from a host function", "[cuda][driver]") {
  const Played played = play({"call from host function"});

  CHECK(played.output == "within: 800\n");
  CHECK(played.errors == "simulated CUDA: called from a host function\n");
  CHECK(play({"call from host function"}, {{"SIM_CUDA_STRICT", "0"}}).errors.empty());
}

TEST_CASE("a process may end while its streams work, and from within one", "[cuda][driver]") {
  for (const char* seed : {"1", "2", "3"}) {
    const Played left = play_soon({"leave"}, {{"SIM_CUDA_SEED", seed}});
    INFO(left);
    CHECK(left.status == 0);
    CHECK(left.errors.empty());
  }

  const Played exited = play_soon({"exit in host function"});
  INFO(exited);
  CHECK(exited.status == 7);
  CHECK(exited.errors.empty());
}

TEST_CASE("what is called after main() by those who end after the driver is told that it has ended", "[cuda][driver]") {
  const std::string ended = "cuInit: 4\ncuMemFree: 4\ncuStreamSynchronize: 4\ncuDevicePrimaryCtxRelease: 4\n";
  const Played played = play_soon({"call at the end"});

  INFO(played);
  CHECK(played.status == 0);
  CHECK(played.output == "atexit\n" + ended + "static destructor\n" + ended);
}

TEST_CASE("a child of fork() is refused, and ends at once", "[cuda][driver]") {
  const Environment no_leaks{{"ASAN_OPTIONS", "detect_leaks=0"}};  // the threads that hold memory are not in the child
  const Played played = play_soon({"use after fork"}, no_leaks);

  INFO(played);
  CHECK(played.output == "in the child: 3\nits exit: 5\n");
  CHECK(played.errors == "simulated CUDA: called after fork()\n");
}

}  // namespace
}  // namespace millrace
