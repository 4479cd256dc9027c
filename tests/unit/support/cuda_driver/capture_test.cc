// The simulated CUDA driver: what may be called while a stream is captured.
#include "tests/unit/support/cuda_driver/rig.h"

namespace millrace {
namespace {

constexpr const char *kGlobal = "0", *kThreadLocal = "1", *kRelaxed = "2";
const std::string kFine = "call: 0\nend: 0\n", kForbidden = "call: 900\nend: 901\n";

std::string captured(const char* mode, const char* where, const char* mode_there, const char* call) {
  const Played played = play({"capture", mode, where, mode_there, call});
  INFO(played);
  const bool is_quiet = played.errors.empty(), is_fine = played.prints("end: 0");
  CHECK(is_quiet == is_fine);
  return played.output;
}

TEST_CASE("a capture forbids calls that may wait for the device or change its memory", "[cuda][driver]") {
  for (const char* call :
       {"cuMemAlloc", "cuMemFree", "cuMemHostUnregister", "cuModuleLoadData", "cuEventQuery", "cuStreamSynchronize"}) {
    INFO(call);
    CHECK(captured(kGlobal, "here", kGlobal, call) == kForbidden);
    CHECK(captured(kGlobal, "there", kGlobal, call) == kForbidden);
    CHECK(captured(kGlobal, "there", kRelaxed, call) == kFine);
  }
  CHECK(captured(kGlobal, "there", kGlobal, "cuEventRecord") == kFine);
}

TEST_CASE("whom a capture forbids them is said by its mode, and by that of the thread that calls", "[cuda][driver]") {
  CHECK(captured(kGlobal, "there", kThreadLocal, "cuMemAlloc") == kFine);
  CHECK(captured(kGlobal, "here", kThreadLocal, "cuMemAlloc") == kForbidden);
  CHECK(captured(kGlobal, "here", kRelaxed, "cuMemAlloc") == kFine);
  CHECK(captured(kThreadLocal, "there", kGlobal, "cuMemAlloc") == kFine);
  CHECK(captured(kThreadLocal, "here", kGlobal, "cuMemAlloc") == kForbidden);
  CHECK(captured(kRelaxed, "there", kGlobal, "cuMemAlloc") == kFine);
  CHECK(captured(kRelaxed, "here", kGlobal, "cuMemAlloc") == kFine);
}

TEST_CASE("nobody waits for what is captured, nor does it for what is not", "[cuda][driver]") {
  for (const char* mode : {kGlobal, kRelaxed}) {
    CHECK(captured(mode, "there", kRelaxed, "cuStreamSynchronize of it") == kForbidden);
    CHECK(captured(mode, "there", kRelaxed, "cuEventQuery within") == "call: 907\nend: 901\n");
    CHECK(captured(mode, "there", kRelaxed, "cuStreamWaitEvent of it") == "call: 905\nend: 901\n");
  }
}

TEST_CASE("what a capture is given is not done, and its own thread ends it", "[cuda][driver]") {
  const Played played = play({"captured work"});

  INFO(played);
  CHECK(played.output ==
        "memset: 0\nend: 908\nend: 0\nend: 401\n0xc7\n"
        "synchronise: 900\nmemset: 901\nend: 901\nmemset: 0\nsynchronise: 0\n");
}

}  // namespace
}  // namespace millrace
