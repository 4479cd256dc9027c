#include "daemon/backend/device_host/hosted_device.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "daemon/observe/log.h"

namespace millrace::device_host {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFirstPause{1000}, kLongestPause{60'000}, kHealthy{60'000};
constexpr std::chrono::milliseconds kLookForRestLeast{100}, kLookForRest{10'000};
constexpr std::chrono::milliseconds kLook{20};  // how often a killed process is looked after
constexpr std::chrono::seconds kPatienceAtFirst{20}, kPatience{120};

}  // namespace

HostedDevice::HostedDevice(DeviceDescription description)
    : is_(std::move(description)), woken_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Result<void> HostedDevice::start() {
  MILLRACE_TRY_VOID(begin());
  return wait_until_begun();
}

Result<void> HostedDevice::begin() {
  if (!woken_) return Error{Code::kExhausted, errno_error("making an eventfd", errno).message};
  keeper_ = std::thread([this] { run_keeper(); });
  pthread_setname_np(keeper_.native_handle(), is_.thread.c_str());
  return {};
}

Result<void> HostedDevice::wait_until_begun() {
  const Result<void> first = wait_for_first();
  const bool is_hopeless =
      !first && (first.error().code == Code::kUnsupported || first.error().code == Code::kInternal);
  if (is_hopeless) return first;
  if (!first) {
    MutexLock telling(telling_);
    if (!current() && !resting()) health_.lost(first.error().message);
  }
  return {};
}

Result<void> HostedDevice::wait_for_first() {
  const Clock::time_point until = Clock::now() + kPatienceAtFirst;
  MutexLock lock(mutex_);
  while (!first_ && changed_.wait_until(mutex_, until)) {
  }
  return first_ ? *first_ : Error{Code::kUnavailable, "it has not come up yet"};
}

// False, for a caller that has nothing else to say.
bool HostedDevice::first_came_to(const Result<void>& how) {
  bool is_first = false, is_over = false, rested = false;
  {
    MutexLock lock(mutex_);
    is_first = !first_;
    is_over = closed_;
    rested = rests_;
    if (is_first) first_ = how;
  }
  if (rested && !how) {
    MutexLock telling(telling_);
    health_.lost(how.error().message);
  }
  {
    MutexLock lock(mutex_);
    rests_ = false;
  }
  changed_.notify_all();
  if (!is_first && !how && !is_over) log_warning("a " + is_.what + " cannot be had again yet: " + how.error().message);
  return false;
}

void HostedDevice::stop() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
    if (latest_) latest_->end();  // a thread that waits for it hears its end
  }
  changed_.notify_all();
  wake_keeper();
  if (keeper_.joinable()) keeper_.join();
}

void HostedDevice::wake_keeper() {
  const std::uint64_t one = 1;
  while (woken_ && write(woken_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

std::shared_ptr<HostProcess> HostedDevice::current() const {
  MutexLock lock(mutex_);
  return current_;
}

std::shared_ptr<HostProcess> HostedDevice::wanted(std::chrono::milliseconds patience) {
  const Clock::time_point until = Clock::now() + patience;
  {
    MutexLock lock(mutex_);
    while (rests_ && !closed_) {
      is_wanted_ = true;
      changed_.notify_all();
      if (!changed_.wait_until(mutex_, until)) break;
    }
    used_ = Clock::now();
    if (current_ || closed_) return current_;
    rests_ = false;  // others do not wait for it as well
  }
  MutexLock telling(telling_);
  std::shared_ptr<HostProcess> process = current();
  if (!process && !health_.is_lost())
    health_.lost("it has not come up within " + std::to_string(patience.count()) + " ms");
  return process;
}

bool HostedDevice::closed() const {
  MutexLock lock(mutex_);
  return closed_;
}

void HostedDevice::lost(const std::shared_ptr<HostProcess>& process, const std::string& why) {
  MutexLock telling(telling_);
  if (closed() || current() != process) return;
  const std::string how = process->is_gone() ? process->how_it_ended() : "";
  process->end();
  health_.lost(how.empty() ? why : why + ", " + how);
  {
    MutexLock lock(mutex_);
    current_ = nullptr;
  }
  wake_keeper();
}

// False: the end has come.
bool HostedDevice::wait(std::chrono::milliseconds time) {
  const auto until = Clock::now() + time;
  MutexLock lock(mutex_);
  while (!closed_ && Clock::now() < until) static_cast<void>(changed_.wait_until(mutex_, until));
  return !closed_;
}

// A new process would find the device's memory taken while the old one is still there.
bool HostedDevice::wait_for_its_end() {
  std::shared_ptr<HostProcess> latest;
  {
    MutexLock lock(mutex_);
    latest = latest_;
  }
  while (latest && !latest->is_gone()) {
    if (!wait(kLook)) return false;
  }
  MutexLock lock(mutex_);
  latest_ = nullptr;
  return !closed_;
}

void HostedDevice::run_keeper() {
  auto pause = kFirstPause;
  while (!closed()) {
    if (bring_up()) {
      const Clock::time_point begun = Clock::now();
      watch();
      if (Clock::now() - begun >= kHealthy) pause = kFirstPause;
    }
    if (!wait_for_its_end()) return;
    if (resting()) {
      if (!wait_until_wanted()) return;
      continue;
    }
    if (!wait(pause)) return;
    pause = std::min(2 * pause, kLongestPause);
  }
}

bool HostedDevice::resting() const {
  MutexLock lock(mutex_);
  return rests_;
}

// False: the end has come.
bool HostedDevice::wait_until_wanted() {
  MutexLock lock(mutex_);
  while (!closed_ && !is_wanted_) changed_.wait(mutex_);
  return !closed_;
}

// Of poll(): until somebody has to look whether it may rest.
int HostedDevice::until_rest() const {
  if (is_.rest_after.count() == 0) return -1;
  MutexLock lock(mutex_);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(used_ + is_.rest_after - Clock::now());
  const auto next = left.count() > 0 ? left : is_.rest_after;  // it is in use
  return static_cast<int>(std::clamp(next, kLookForRestLeast, kLookForRest).count());
}

// Whether it does so now. Nobody has its process: who gets it from here on has to ask under the mutex.
bool HostedDevice::rest() {
  constexpr long kOurs = 3;  // current_, latest_, and watch() has it
  MutexLock telling(telling_);
  MutexLock lock(mutex_);
  if (is_.rest_after.count() == 0 || closed_ || !current_) return false;
  if (Clock::now() - used_ < is_.rest_after || current_.use_count() > kOurs || awake_.use_count() > 1) return false;
  current_->end();
  current_ = nullptr;
  rests_ = true;
  is_wanted_ = false;
  return true;
}

bool HostedDevice::bring_up() {
  Result<std::shared_ptr<HostProcess>> started = is_.start();
  if (!started) return first_came_to(started.error());
  const std::shared_ptr<HostProcess> process = *std::move(started);
  {
    MutexLock lock(mutex_);
    latest_ = process;
    if (closed_) process->end();
  }
  const Result<void> greeted = process->greet(kPatience);
  if (!greeted) {
    process->end();
    return first_came_to(greeted);
  }
  {
    MutexLock telling(telling_);
    {
      MutexLock lock(mutex_);
      if (closed_) return false;
      current_ = process;
      used_ = Clock::now();
    }
    health_.ready();
  }
  first_came_to({});
  return true;
}

// Until the current process is lost. One that ends while nobody asks it is noticed here.
void HostedDevice::watch() {
  while (const std::shared_ptr<HostProcess> process = current()) {
    pollfd both[] = {{.fd = woken_.get(), .events = POLLIN}, {.fd = process->end_of_it(), .events = POLLIN}};
    const int ready = poll(both, 2, until_rest());
    if (ready == 0 && rest()) return log_info("a " + is_.what + " rests: nothing has wanted it for a while");
    if (ready <= 0) continue;
    std::uint64_t times = 0;
    if (both[0].revents != 0 && read(woken_.get(), &times, sizeof times) < 0) continue;
    if (closed()) return;
    if (both[1].revents == 0) continue;
    for (int i = 0; i < 100 && !process->is_gone(); ++i) static_cast<void>(wait(std::chrono::milliseconds(1)));
    lost(process, "the process that has the " + is_.what + " ended");
  }
}

}  // namespace millrace::device_host
