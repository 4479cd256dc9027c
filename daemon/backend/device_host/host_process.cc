#include "daemon/backend/device_host/host_process.h"

#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "daemon/observe/cpu_time.h"

namespace millrace::device_host {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kOwnerPatienceAtEnd{5};

}  // namespace

HostProcess::HostProcess(UniqueFd control, pid_t pid) : control_(std::move(control)), pid_(pid) {
  child_started(pid);
}

std::optional<std::chrono::nanoseconds> HostProcess::cpu_time() const {
  MutexLock lock(mutex_);
  return gone_ ? std::nullopt : process_cpu_time(pid_);
}

HostProcess::~HostProcess() {
  end();
  const Clock::time_point until = Clock::now() + kOwnerPatienceAtEnd;
  while (!is_gone() && Clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void HostProcess::end() {
  MutexLock lock(mutex_);
  if (gone_) return;
  ended_ = true;
  kill(pid_, SIGKILL);
}

bool HostProcess::is_gone() {
  MutexLock lock(mutex_);
  if (gone_) return true;
  siginfo_t info{};
  const int waited = waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG);
  if (waited != 0 && errno != ECHILD) return false;
  const bool is_reaped = waited != 0;  // somebody else has taken note of its end
  if (!is_reaped && info.si_pid != pid_) return false;
  child_ended(pid_);
  if (is_reaped) return gone_ = true;
  code_ = info.si_code;
  status_ = info.si_status;
  return gone_ = true;
}

std::string HostProcess::how_it_ended() const {
  MutexLock lock(mutex_);
  if (!gone_ || ended_) return "";
  return (code_ == CLD_EXITED ? "with status " : "of signal ") + std::to_string(status_);
}

}  // namespace millrace::device_host
