#include "daemon/backend/cuda/cuda_device.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

constexpr std::chrono::milliseconds kFirstPause{1000}, kLongestPause{60'000};
constexpr std::chrono::milliseconds kLook{20};  // how often a killed process is looked after

}  // namespace

Result<std::unique_ptr<CudaDevice>> CudaDevice::start(std::string program, const CudaUuid& gpu,
                                                      const CudaWorkerOrder& order) {
  MILLRACE_TRY(std::shared_ptr<CudaWorker> worker, CudaWorker::start(program, gpu, order));
  return std::unique_ptr<CudaDevice>(new CudaDevice(std::move(program), gpu, order, std::move(worker)));
}

CudaDevice::CudaDevice(std::string program, const CudaUuid& gpu, const CudaWorkerOrder& order,
                       std::shared_ptr<CudaWorker> worker)
    : program_(std::move(program)), gpu_(gpu), order_(order), current_(std::move(worker)) {
  keeper_ = std::thread([this] { run_keeper(); });
  pthread_setname_np(keeper_.native_handle(), "mr-gpu");
}

CudaDevice::~CudaDevice() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  keeper_.join();
}

std::shared_ptr<CudaWorker> CudaDevice::current() const {
  MutexLock lock(mutex_);
  return current_;
}

std::uint64_t CudaDevice::starts() const {
  MutexLock lock(mutex_);
  return starts_;
}

void CudaDevice::lost(const std::shared_ptr<CudaWorker>& worker, std::string why) {
  MutexLock telling(telling_);
  {
    MutexLock lock(mutex_);
    if (current_ != worker) return;
    dying_ = std::move(current_);
    current_ = nullptr;
  }
  worker->end();
  health_.lost(std::move(why));
  changed_.notify_all();
}

// False: the end has come.
bool CudaDevice::wait(std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  MutexLock lock(mutex_);
  while (!closed_ && std::chrono::steady_clock::now() < until) static_cast<void>(changed_.wait_until(mutex_, until));
  return !closed_;
}

bool CudaDevice::wait_until_lost() {
  MutexLock lock(mutex_);
  while (!closed_ && current_) changed_.wait(mutex_);
  return !closed_;
}

// A new process would find the GPU's memory taken while the old one is still there.
void CudaDevice::run_keeper() {
  while (wait_until_lost()) {
    std::shared_ptr<CudaWorker> dying;
    {
      MutexLock lock(mutex_);
      dying = std::exchange(dying_, nullptr);
    }
    while (dying && !dying->is_gone()) {
      if (!wait(kLook)) return;
    }
    dying.reset();
    auto pause = kFirstPause;
    while (!bring_back()) {
      if (!wait(pause)) return;
      pause = std::min(2 * pause, kLongestPause);
    }
  }
}

bool CudaDevice::bring_back() {
  Result<std::shared_ptr<CudaWorker>> worker = CudaWorker::start(program_, gpu_, order_);
  if (!worker) return false;
  MutexLock telling(telling_);
  {
    MutexLock lock(mutex_);
    current_ = *std::move(worker);
    ++starts_;
  }
  health_.ready();
  return true;
}

}  // namespace millrace
