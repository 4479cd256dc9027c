// The simulated CUDA driver: memory of the host that is registered.
#include "tests/unit/support/cuda_driver/rig.h"

namespace millrace {
namespace {

TEST_CASE("memory is registered once, by whole pages, and known by its first address", "[cuda][driver]") {
  const Played played = play({"registering"});

  INFO(played);
  CHECK(played.output ==
        "address of what is not: 1\n"
        "from within page 1 to within page 2: 0\n"
        "address: 0\n"
        "the same: 712\n"
        "beside it in page 1: 712\n"
        "beside it in page 2: 712\n"
        "around it: 712\n"
        "to the first byte of page 1: 712\n"
        "to the end of page 0: 0\n"
        "from page 3: 0\n"
        "unregister by its page: 713\n"
        "unregister within: 713\n"
        "unregister: 0\n"
        "unregister twice: 713\n"
        "both pages again: 0\n");
  CHECK(played.errors.empty());
}

TEST_CASE("memory that a process may not write is registered by the flag for such memory alone", "[cuda][driver]") {
  const std::string refused = "simulated CUDA: memory registered that this process may not write, or not even read\n";
  const Played played = play({"registering read-only"});

  INFO(played);
  CHECK(played.output ==
        "writable: 0\n"
        "read-only: 1\n"
        "read-only among others: 1\n"
        "read-only, with the flag: 0\n"
        "among others, with the flag: 0\n"
        "without access: 1\n"
        "into what is without access: 1\n");
  CHECK(played.errors == refused + refused + refused + refused);
}

TEST_CASE("a device may lack that flag", "[cuda][driver]") {
  const Played played = play({"registering read-only"}, {{"SIM_CUDA_READ_ONLY_REGISTER", "0"}});

  INFO(played);
  CHECK(played.output ==
        "writable: 0\n"
        "read-only: 1\n"
        "read-only among others: 1\n"
        "read-only, with the flag: 801\n"
        "among others, with the flag: 801\n"
        "without access: 1\n"
        "into what is without access: 801\n");
}

}  // namespace
}  // namespace millrace
