// A GPU that comes back: the process that owns it now, and the thread that starts and watches them.
//
//   start() ──▶ current(): a worker ◀────────────────────────────────────────┐
//                  │ lost(worker, why), or it ends by itself                 │ health: ready
//                  ▼                                                         │
//               health: lost ──▶ killed, waited for ──▶ a pause ──▶ started anew
//                                                       └─ 1 s, 2 s, 4 s ... 60 s; 1 s again after a minute of health
//
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "daemon/backend/cuda/cuda_worker.h"
#include "daemon/backend/health.h"
#include "proto/base/mutex.h"
#include "proto/base/unique_fd.h"

namespace millrace {

class CudaDevice {
 public:
  // Waits for the first worker, a while. kUnsupported: this GPU will not do, whatever is tried; kInternal: nor will the
  // program. Where it fails otherwise, or takes longer, the GPU begins as a lost one.
  static Result<std::unique_ptr<CudaDevice>> start(std::string program, const CudaUuid& gpu,
                                                   const CudaWorkerOrder& order);
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;
  ~CudaDevice() { stop(); }

  HealthNews& health() { return health_; }

  // nullptr: it is lost.
  std::shared_ptr<CudaWorker> current() const MILLRACE_EXCLUDES(mutex_);

  // `worker` is of no more use. When this returns, whoever listens has been told. Nothing if it is not the current one.
  void lost(const std::shared_ptr<CudaWorker>& worker, const std::string& why) MILLRACE_EXCLUDES(mutex_)
      MILLRACE_EXCLUDES(telling_);

  // Ends the worker, and no other is started. Idempotent; not to be called by two threads at once.
  void stop() MILLRACE_EXCLUDES(mutex_);

 private:
  CudaDevice(std::string program, const CudaUuid& gpu, const CudaWorkerOrder& order);
  void run_keeper();
  bool bring_up() MILLRACE_EXCLUDES(mutex_) MILLRACE_EXCLUDES(telling_);
  void watch() MILLRACE_EXCLUDES(mutex_);
  bool wait_for_its_end() MILLRACE_EXCLUDES(mutex_);
  bool wait(std::chrono::milliseconds time) MILLRACE_EXCLUDES(mutex_);
  void wake_keeper();
  bool first_came_to(Result<void> how) MILLRACE_EXCLUDES(mutex_);
  Result<void> wait_for_first() MILLRACE_EXCLUDES(mutex_);
  bool closed() const MILLRACE_EXCLUDES(mutex_);

  const std::string program_;
  const CudaUuid gpu_;
  const CudaWorkerOrder order_;
  UniqueFd woken_;  // an eventfd: the keeper looks up from what it polls
  HealthNews health_;
  Mutex telling_;  // news in order, and told before anybody goes on
  mutable Mutex mutex_;
  Condition changed_;
  std::shared_ptr<CudaWorker> current_ MILLRACE_GUARDED_BY(mutex_);
  std::shared_ptr<CudaWorker> latest_ MILLRACE_GUARDED_BY(mutex_);  // current, beginning or dying
  std::optional<Result<void>> first_ MILLRACE_GUARDED_BY(mutex_);   // what the first start came to
  bool closed_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::thread keeper_;
};

}  // namespace millrace
