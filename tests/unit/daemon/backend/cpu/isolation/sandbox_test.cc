// What a process in the sandbox can do and what ends it: by a program that tries (sandbox_inmate.cc).
#include <catch2/catch.hpp>
#include <csignal>

#include "proto/base/sanitized.h"
#include "tests/support/host/process.h"
#include "tests/support/skip.h"

namespace millrace {
namespace {

int outcome_of(const std::string& attempt) {
  Process inmate = Process::spawn({.argv = {tests_folder() + "/millrace_sandbox_inmate", attempt}});
  const std::optional<int> status = inmate.wait();
  REQUIRE(status);
  INFO(inmate.errors());
  REQUIRE(*status != 1);  // no such attempt
  REQUIRE(*status != 2);  // no sandbox
  return *status;
}

constexpr int kDone = 0, kRefused = 3;

}  // namespace

TEST_CASE("a sandboxed process takes memory, reads the clock and answers", "[sandbox]") {
  for (const char* attempt : {"nothing", "memory", "clock", "answer"}) {
    INFO(attempt);
    const int outcome = outcome_of(attempt);
    // Nobody is left to read the answer: only its being sent is of interest.
    REQUIRE((outcome == kDone || (std::string(attempt) == "answer" && outcome == kRefused)));
  }
}

TEST_CASE("a sandboxed process gets no more memory than its limit", "[sandbox]") {
  if (kSanitized) return skip_loudly("a sandbox's limit on memory: not there under sanitizers");

  REQUIRE(outcome_of("much memory") == kRefused);
  REQUIRE(outcome_of("one more mapping") == kRefused);
}

TEST_CASE("a sandboxed process that aborts dies of that, not of the sandbox", "[sandbox]") {
  REQUIRE(outcome_of("abort") == 128 + SIGABRT);
}

TEST_CASE("a sandboxed process that tries anything else is killed", "[sandbox]") {
  const char* const kForbidden[] = {"open",
                                    "read",
                                    "socket",
                                    "connect",
                                    "send descriptors",
                                    "receive descriptors",
                                    "execute",
                                    "fork",
                                    "thread",
                                    "kill the daemon",
                                    "signal another",
                                    "trace",
                                    "outlive",
                                    "shared memory",
                                    "raise a limit",
                                    "another identity",
                                    "read another's memory",
                                    "executable memory",
                                    "memory that is only read",
                                    "a namespace",
                                    "io_uring",
                                    "make executable",
                                    "control",
                                    "close",
                                    "send to an address"};
  for (const char* const attempt : kForbidden) {
    INFO(attempt);
    const bool sanitizers_do = std::string(attempt) == "close" || std::string(attempt) == "memory that is only read";
    if (kSanitized && sanitizers_do) continue;
    REQUIRE(outcome_of(attempt) == 128 + SIGSYS);
  }
}

}  // namespace millrace
