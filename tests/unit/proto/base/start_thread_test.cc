#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <future>
#include <string>

#include "proto/base/sanitized.h"
#include "proto/base/start_thread.h"
#include "tests/support/skip.h"

namespace millrace {
namespace {

TEST_CASE("a thread is started and has its name", "[base]") {
  std::promise<void> end;
  std::array<char, 16> name{};

  Result<std::thread> thread = start_thread("mr-test", [&] { end.get_future().wait(); });
  REQUIRE(thread);
  pthread_getname_np(thread->native_handle(), name.data(), name.size());
  end.set_value();
  thread->join();

  CHECK(name.data() == std::string("mr-test"));
}

// In a process of its own, whose user may have no thread.
TEST_CASE("where no thread can be had there is an error, and the process goes on", "[base]") {
  if (kSanitized) return skip_loudly("a process that may have no thread: sanitizers need some themselves");
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kSomebody = 54'321;
    const rlimit none{0, 0};
    setrlimit(RLIMIT_NPROC, &none);
    if (getuid() == 0 && setresuid(kSomebody, kSomebody, kSomebody) != 0) _exit(2);  // root may have any number
    const Result<std::thread> thread = start_thread("mr-test", [] {});
    _exit(!thread && thread.error().code == Code::kUnavailable ? 0 : 1);
  }

  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace millrace
