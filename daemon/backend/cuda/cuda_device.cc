#include "daemon/backend/cuda/cuda_device.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFirstPause{1000}, kLongestPause{60'000}, kHealthy{60'000};
constexpr std::chrono::milliseconds kLook{20};  // how often a killed process is looked after
constexpr std::chrono::seconds kPatienceAtFirst{20}, kPatience{120};

}  // namespace

Result<std::unique_ptr<CudaDevice>> CudaDevice::start(std::string program, const CudaUuid& gpu,
                                                      const CudaWorkerOrder& order) {
  std::unique_ptr<CudaDevice> device(new CudaDevice(std::move(program), gpu, order));
  if (!device->woken_) return Error{Code::kExhausted, errno_error("making an eventfd", errno).message};
  device->keeper_ = std::thread([self = device.get()] { self->run_keeper(); });
  pthread_setname_np(device->keeper_.native_handle(), "mr-gpu");
  const Result<void> first = device->wait_for_first();
  const bool is_hopeless =
      !first && (first.error().code == Code::kUnsupported || first.error().code == Code::kInternal);
  if (is_hopeless) return first.error();
  if (!first) {
    MutexLock telling(device->telling_);
    if (!device->current()) device->health_.lost(first.error().message);
  }
  return device;
}

CudaDevice::CudaDevice(std::string program, const CudaUuid& gpu, const CudaWorkerOrder& order)
    : program_(std::move(program)), gpu_(gpu), order_(order), woken_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Result<void> CudaDevice::wait_for_first() {
  const Clock::time_point until = Clock::now() + kPatienceAtFirst;
  MutexLock lock(mutex_);
  while (!first_ && changed_.wait_until(mutex_, until)) {
  }
  return first_ ? *first_ : Error{Code::kUnavailable, "it has not come up yet"};
}

// False, for whoever has nothing else to say.
bool CudaDevice::first_came_to(Result<void> how) {
  {
    MutexLock lock(mutex_);
    if (first_) return false;
    first_ = std::move(how);
  }
  changed_.notify_all();
  return false;
}

void CudaDevice::stop() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
    if (latest_) latest_->end();  // whoever waits for it hears its end
  }
  changed_.notify_all();
  wake_keeper();
  if (keeper_.joinable()) keeper_.join();
}

void CudaDevice::wake_keeper() {
  const std::uint64_t one = 1;
  while (woken_ && write(woken_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

std::shared_ptr<CudaWorker> CudaDevice::current() const {
  MutexLock lock(mutex_);
  return current_;
}

bool CudaDevice::closed() const {
  MutexLock lock(mutex_);
  return closed_;
}

void CudaDevice::lost(const std::shared_ptr<CudaWorker>& worker, const std::string& why) {
  MutexLock telling(telling_);
  if (current() != worker) return;
  const std::string how = worker->is_gone() ? worker->how_it_ended() : "";
  worker->end();
  health_.lost(how.empty() ? why : why + ", " + how);
  {
    MutexLock lock(mutex_);
    current_ = nullptr;
  }
  wake_keeper();
}

// False: the end has come.
bool CudaDevice::wait(std::chrono::milliseconds time) {
  const auto until = Clock::now() + time;
  MutexLock lock(mutex_);
  while (!closed_ && Clock::now() < until) static_cast<void>(changed_.wait_until(mutex_, until));
  return !closed_;
}

// A new process would find the GPU's memory taken while the old one is still there.
bool CudaDevice::wait_for_its_end() {
  std::shared_ptr<CudaWorker> latest;
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

void CudaDevice::run_keeper() {
  auto pause = kFirstPause;
  while (!closed()) {
    const Clock::time_point begun = Clock::now();
    if (bring_up()) watch();
    if (Clock::now() - begun >= kHealthy) pause = kFirstPause;
    if (!wait_for_its_end() || !wait(pause)) return;
    pause = std::min(2 * pause, kLongestPause);
  }
}

bool CudaDevice::bring_up() {
  Result<std::shared_ptr<CudaWorker>> started = CudaWorker::start(program_, order_);
  if (!started) return first_came_to(started.error());
  const std::shared_ptr<CudaWorker> worker = *std::move(started);
  {
    MutexLock lock(mutex_);
    latest_ = worker;
    if (closed_) worker->end();
  }
  const Result<void> greeted = worker->greet(gpu_, order_, kPatience);
  if (!greeted) {
    worker->end();
    return first_came_to(greeted);
  }
  {
    MutexLock telling(telling_);
    {
      MutexLock lock(mutex_);
      if (closed_) return false;
      current_ = worker;
    }
    health_.ready();
  }
  first_came_to({});
  return true;
}

// Until the current worker is lost. One that ends while nobody asks it is noticed here.
void CudaDevice::watch() {
  while (const std::shared_ptr<CudaWorker> worker = current()) {
    pollfd both[] = {{.fd = woken_.get(), .events = POLLIN}, {.fd = worker->end_of_it(), .events = POLLIN}};
    if (poll(both, 2, -1) < 0) continue;
    std::uint64_t times = 0;
    if (both[0].revents != 0 && read(woken_.get(), &times, sizeof times) < 0) continue;
    if (closed()) return;
    if (both[1].revents == 0) continue;
    for (int i = 0; i < 100 && !worker->is_gone(); ++i) static_cast<void>(wait(std::chrono::milliseconds(1)));
    lost(worker, "the process that has the GPU ended");
  }
}

}  // namespace millrace
