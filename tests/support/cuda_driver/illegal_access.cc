#include "tests/support/cuda_driver/illegal_access.h"

#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "tests/support/cuda_driver/memory.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MILLRACE_LEAKS_ARE_SEEN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(MILLRACE_LEAKS_ARE_SEEN)
#include <sanitizer/lsan_interface.h>
// An operation that faults is left without its destructors: what it had allocated is no leak to report.
using LeaksUnseen = __lsan::ScopedDisabler;
#else
struct LeaksUnseen {
  LeaksUnseen() {}
};
#endif

namespace millrace::sim {
namespace {

// Not to be allocated by its first use, which may be within a signal.
__attribute__((tls_model("initial-exec"))) thread_local sigjmp_buf* guard = nullptr;

struct sigaction before_segv, before_bus;

void say_address(const void* at) {
  char line[128];
  const int length =
      std::snprintf(line, sizeof(line), "simulated CUDA: host code used the device address 0x%llx as a pointer\n",
                    reinterpret_cast<unsigned long long>(at));
  [[maybe_unused]] const ssize_t written = write(2, line, static_cast<std::size_t>(length));
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const Memory& memory = Memory::get();
  if (guard != nullptr && memory.is_window(info->si_addr)) siglongjmp(*guard, 1);
  if (memory.is_device(info->si_addr)) say_address(info->si_addr);
  const struct sigaction& before = signal == SIGBUS ? before_bus : before_segv;
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr)
    return before.sa_sigaction(signal, info, context);
  sigaction(signal, &before, nullptr);  // returns to the access, which ends the process
}

}  // namespace

void catch_illegal_access() {
  Memory::get();
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigaction(SIGSEGV, &action, &before_segv);
  sigaction(SIGBUS, &action, &before_bus);
}

cuda::CUresult guarded(const std::function<cuda::CUresult()>& run) {
  const LeaksUnseen unseen;
  sigjmp_buf here;
  if (sigsetjmp(here, 1) != 0) {
    guard = nullptr;
    return cuda::CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  guard = &here;
  cuda::CUresult result = cuda::CUDA_SUCCESS;
  try {
    result = run();
  } catch (const IllegalAddress&) {
    result = cuda::CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  guard = nullptr;
  return result;
}

}  // namespace millrace::sim
