// A program in the sandbox of decoder processes that tries one thing: `millrace_sandbox_inmate WHAT`. Ends with 0 when it
// could be done, with 3 when it was refused; most of it kills it. For sandbox_test.cc.
#include <fcntl.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

#include "daemon/backend/cpu/isolation/sandbox.h"

namespace {

constexpr std::size_t kLimit = std::size_t{16} << 20;
int channel[2];
void* page;

bool done(long result) {
  return result >= 0;
}
bool mapped(int protection, int flags) {
  return mmap(nullptr, 4096, protection, flags, -1, 0) != MAP_FAILED;
}

// By raw calls, so that it is told by what the kernel is asked.
struct Attempt {
  const char* name;
  bool (*run)();
};
const Attempt kAttempts[] = {
    // What decoding needs.
    {"nothing", [] { return true; }},
    {"memory", [] { return mapped(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS); }},
    {"clock",
     [] {
       timespec now;
       return done(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now));
     }},
    {"answer", [] { return send(channel[0], "x", 1, MSG_NOSIGNAL) == 1; }},
    {"much memory",
     [] {
       return mmap(nullptr, 2 * kLimit, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
     }},
    {"abort",
     [] {
       std::abort();
       return true;
     }},
    // What it does not.
    {"open", [] { return done(syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY)); }},
    {"read",
     [] {
       char byte;
       return done(syscall(SYS_read, channel[0], &byte, 1));
     }},
    {"socket", [] { return done(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0)); }},
    {"connect", [] { return done(syscall(SYS_connect, channel[0], nullptr, 0)); }},
    {"send descriptors",
     [] {
       msghdr message{};
       return done(syscall(SYS_sendmsg, channel[0], &message, 0));
     }},
    {"receive descriptors",
     [] {
       msghdr message{};
       return done(syscall(SYS_recvmsg, channel[0], &message, 0));
     }},
    {"send to an address", [] { return done(syscall(SYS_sendto, channel[0], "x", 1, 0, page, 16)); }},
    {"execute", [] { return done(syscall(SYS_execve, "/bin/true", nullptr, nullptr)); }},
    {"fork", [] { return done(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr)); }},
    {"thread",
     [] {
       clone_args arguments{};
       return done(syscall(SYS_clone3, &arguments, sizeof arguments));
     }},
    {"kill the daemon", [] { return done(syscall(SYS_kill, getppid(), 0)); }},
    {"signal another", [] { return done(syscall(SYS_tgkill, 1, 1, 0)); }},
    {"trace", [] { return done(syscall(SYS_ptrace, PTRACE_TRACEME, 0, nullptr, nullptr)); }},
    {"read another's memory", [] { return done(syscall(SYS_process_vm_readv, 1, nullptr, 0, nullptr, 0, 0)); }},
    {"executable memory", [] { return mapped(PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS); }},
    {"memory that is only read", [] { return mapped(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS); }},
    {"one more mapping", [] { return done(syscall(SYS_mremap, page, 0, 4096, MREMAP_MAYMOVE)); }},
    {"make executable", [] { return done(syscall(SYS_mprotect, page, 4096, PROT_READ | PROT_EXEC)); }},
    {"shared memory", [] { return done(syscall(SYS_memfd_create, "x", 0U)); }},
    {"raise a limit",
     [] {
       const rlimit64 limit{1 << 30, 1 << 30};
       return done(syscall(SYS_prlimit64, 0, RLIMIT_DATA, &limit, nullptr));
     }},
    {"outlive", [] { return done(syscall(SYS_prctl, PR_SET_PDEATHSIG, 0, 0, 0, 0)); }},
    {"another identity", [] { return done(syscall(SYS_setuid, 1)); }},
    {"a namespace", [] { return done(syscall(SYS_unshare, CLONE_NEWUSER)); }},
    {"io_uring", [] { return done(syscall(SYS_io_uring_setup, 1, page)); }},
    {"control", [] { return done(syscall(SYS_ioctl, channel[0], 0, 0)); }},
    {"close", [] { return done(syscall(SYS_close, channel[0])); }},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  for (const Attempt& attempt : kAttempts) {
    if (attempt.name != what) continue;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, channel) != 0) return 1;
    page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto inside = millrace::enter_sandbox(channel[1], {.data_bytes = kLimit, .cpu_seconds = 5});
    if (!inside) return std::fprintf(stderr, "%s\n", inside.error().message.c_str()), 2;
    channel[0] = channel[1];  // the one that is left
    _exit(attempt.run() ? 0 : 3);
  }
  return 1;
}
