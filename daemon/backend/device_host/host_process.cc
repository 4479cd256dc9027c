#include "daemon/backend/device_host/host_process.h"

#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <thread>

namespace millrace::device_host {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kOwnerPatienceAtEnd{5};

}  // namespace

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
  if (waited != 0) return gone_ = errno == ECHILD;  // somebody else has taken note of its end
  if (info.si_pid != pid_) return false;
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
