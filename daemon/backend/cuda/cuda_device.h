// A GPU that comes back: the process that owns it now, and the thread that starts another one when it is lost.
//
//   current() ──▶ a worker, or nullptr while it is lost
//   lost(worker, why) ──▶ health: lost ──▶ killed, waited for ──▶ started anew ──▶ health: ready
//                                            └─ fails: after 1 s, 2 s, 4 s ... 60 s again
//
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "daemon/backend/cuda/cuda_worker.h"
#include "daemon/backend/health.h"
#include "proto/base/mutex.h"

namespace millrace {

class CudaDevice {
 public:
  // The first worker is started before this returns; its errors.
  static Result<std::unique_ptr<CudaDevice>> start(std::string program, const CudaUuid& gpu,
                                                   const CudaWorkerOrder& order);
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;
  ~CudaDevice();  // REQUIRES: nobody is in a call

  HealthNews& health() { return health_; }

  std::shared_ptr<CudaWorker> current() const MILLRACE_EXCLUDES(mutex_);

  // `worker` is of no more use. When this returns, whoever listens has been told. Nothing if it is not the current one.
  void lost(const std::shared_ptr<CudaWorker>& worker, std::string why) MILLRACE_EXCLUDES(mutex_)
      MILLRACE_EXCLUDES(telling_);

  // Started since the beginning, the first one included.
  std::uint64_t starts() const MILLRACE_EXCLUDES(mutex_);

 private:
  CudaDevice(std::string program, const CudaUuid& gpu, const CudaWorkerOrder& order,
             std::shared_ptr<CudaWorker> worker);
  void run_keeper() MILLRACE_EXCLUDES(mutex_);
  bool wait(std::chrono::milliseconds time) MILLRACE_EXCLUDES(mutex_);
  bool wait_until_lost() MILLRACE_EXCLUDES(mutex_);
  bool bring_back() MILLRACE_EXCLUDES(mutex_) MILLRACE_EXCLUDES(telling_);

  const std::string program_;
  const CudaUuid gpu_;
  const CudaWorkerOrder order_;
  HealthNews health_;
  Mutex telling_;  // news in order, and told before anybody goes on
  mutable Mutex mutex_;
  Condition changed_;
  std::shared_ptr<CudaWorker> current_ MILLRACE_GUARDED_BY(mutex_);
  std::shared_ptr<CudaWorker> dying_ MILLRACE_GUARDED_BY(mutex_);
  std::uint64_t starts_ MILLRACE_GUARDED_BY(mutex_) = 1;
  bool closed_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::thread keeper_;
};

}  // namespace millrace
