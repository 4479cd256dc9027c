#include "daemon/backend/cpu/isolation/sandbox.h"

#include <fcntl.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "proto/base/sanitized.h"
#include "proto/base/unique_fd.h"

namespace millrace {
namespace {

constexpr rlim_t kStack = rlim_t{1} << 20;

using Filter = std::unique_ptr<void, void (*)(scmp_filter_ctx)>;

struct Rule {
  int call;
  std::vector<scmp_arg_cmp> arguments{};
  std::uint32_t action = SCMP_ACT_ALLOW;
};

scmp_arg_cmp is(unsigned argument, std::uint64_t value) {
  return {argument, SCMP_CMP_EQ, value, 0};
}
scmp_arg_cmp has_no_bits_but(unsigned argument, std::uint64_t bits) {
  return {argument, SCMP_CMP_MASKED_EQ, ~bits, 0};
}

std::vector<Rule> rules(int channel) {
  const auto socket = static_cast<std::uint64_t>(channel);
  const auto self = static_cast<std::uint64_t>(getpid());
  constexpr std::uint64_t kPrivateMemory = MAP_PRIVATE | MAP_ANONYMOUS;
  std::vector<Rule> all{
      {SCMP_SYS(recvfrom), {is(0, socket)}},
      {SCMP_SYS(sendto), {is(0, socket), is(4, 0)}},  // to the other end, and to no address
      {SCMP_SYS(brk)},
      {SCMP_SYS(munmap)},
      // Of nothing it makes one more mapping of the common memory, over and over. realloc() can do without.
      {SCMP_SYS(mremap), {}, SCMP_ACT_ERRNO(ENOSYS)},
      {SCMP_SYS(madvise), {is(2, MADV_DONTNEED)}},
      {SCMP_SYS(clock_gettime)},  // where the vDSO has no clock
      {SCMP_SYS(exit)},
      {SCMP_SYS(exit_group)},
      // abort(), so that it is told from what is forbidden: words to nobody, and a signal to itself.
      {SCMP_SYS(writev), {is(0, STDERR_FILENO)}},
      {SCMP_SYS(rt_sigprocmask)},
      {SCMP_SYS(getpid)},
      {SCMP_SYS(gettid)},
      {SCMP_SYS(tgkill), {is(0, self)}},
  };
  if (!kSanitized) {
    // What cannot be written RLIMIT_DATA does not count, nor the tables that the kernel needs for it.
    all.push_back({SCMP_SYS(mmap), {is(2, PROT_READ | PROT_WRITE), is(3, kPrivateMemory)}});
    return all;
  }
  all.push_back({SCMP_SYS(mmap), {has_no_bits_but(2, PROT_READ | PROT_WRITE)}});
  all.push_back({SCMP_SYS(mprotect), {has_no_bits_but(2, PROT_READ | PROT_WRITE)}});
  // UBSan asks whether memory can be read by writing it into a pipe.
  for (const int call : {SCMP_SYS(pipe2), SCMP_SYS(write), SCMP_SYS(close)}) all.push_back({call});
  for (const int call : {SCMP_SYS(madvise), SCMP_SYS(futex), SCMP_SYS(sched_yield), SCMP_SYS(rt_sigaction),
                         SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack), SCMP_SYS(nanosleep), SCMP_SYS(clock_nanosleep)})
    all.push_back({call});
  return all;
}

Error cannot(const char* what, int error) {
  return {Code::kInternal, errno_error(what, error).message};
}

// Loaded last: nothing that stands before it could be done behind it.
Result<Filter> make_filter(int channel) {
  Filter filter(seccomp_init(SCMP_ACT_KILL_PROCESS), seccomp_release);
  if (!filter)
    return cannot("making a filter of system calls (the unit's SystemCallFilter= has to allow seccomp)", EPERM);
  seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  // Kernels before 5.16 slow down a process with a filter, to guard its parts against each other. Here are none.
  seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_SSB, 1);
  for (const Rule& rule : rules(channel)) {
    const int added = seccomp_rule_add_array(filter.get(), rule.action, rule.call,
                                             static_cast<unsigned>(rule.arguments.size()), rule.arguments.data());
    if (added != 0) return cannot("making a filter of system calls (seccomp)", -added);
  }
  return filter;
}

// When memory is short, the kernel takes it from here rather than from the daemon.
void be_the_first_to_go() {
  const UniqueFd score(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  constexpr char kScore[] = "1000";
  if (score && write(score.get(), kScore, sizeof kScore - 1) < 0)
    return;  // where it is not to be had, it is not needed
}

Result<void> limit(__rlimit_resource what, rlim_t soft, rlim_t hard) {
  const rlimit value{soft, hard};
  if (setrlimit(what, &value) != 0) return cannot("limiting the decoder's process", errno);
  return {};
}

Result<void> set_limits(const SandboxLimits& limits) {
  if (!kSanitized) {
    MILLRACE_TRY_VOID(limit(RLIMIT_DATA, limits.data_bytes, RLIM_INFINITY));
    MILLRACE_TRY_VOID(limit(RLIMIT_STACK, kStack, kStack));
  }
  MILLRACE_TRY_VOID(limit(RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 1));
  MILLRACE_TRY_VOID(limit(RLIMIT_FSIZE, 0, 0));
  MILLRACE_TRY_VOID(limit(RLIMIT_CORE, 0, 0));
  MILLRACE_TRY_VOID(limit(RLIMIT_NPROC, 0, 0));
  MILLRACE_TRY_VOID(limit(RLIMIT_MEMLOCK, 0, 0));
  return kSanitized ? Result<void>() : limit(RLIMIT_NOFILE, 0, 0);
}

// A kernel that cannot (before 5.9) leaves nobody in.
Result<void> close_others(int channel) {
  const auto own = static_cast<unsigned>(channel);
  constexpr unsigned kKept = kSanitized ? STDERR_FILENO : STDERR_FILENO + 1;  // a sanitizer says there what it found
  if (close_range(0, kKept - 1, 0) != 0) return cannot("closing descriptors", errno);
  if (own > STDERR_FILENO + 1 && close_range(STDERR_FILENO + 1, own - 1, 0) != 0)
    return cannot("closing descriptors", errno);
  if (close_range(own + 1, std::numeric_limits<unsigned>::max(), 0) != 0) return cannot("closing descriptors", errno);
  return {};
}

}  // namespace

Result<void> enter_sandbox(int channel, const SandboxLimits& limits) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return cannot("asking to end with the daemon", errno);
  be_the_first_to_go();
  // A program that the kernel hands memory images of crashed processes to would get the user's pixels, whatever
  // RLIMIT_CORE says.
  if (prctl(PR_SET_DUMPABLE, 0) != 0) return cannot("forbidding memory images", errno);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return cannot("giving up privileges", errno);
  MILLRACE_TRY(const Filter filter, make_filter(channel));
  MILLRACE_TRY_VOID(close_others(channel));
  MILLRACE_TRY_VOID(set_limits(limits));
  if (const int loaded = seccomp_load(filter.get()); loaded != 0)
    return cannot("setting a filter of system calls (seccomp)", -loaded);
  return {};
}

}  // namespace millrace
