// NVIDIA's GPUs: "cuda:0", "cuda:1", ... Each belongs to a process of its own, millrace-cuda, which alone has a CUDA
// context; lanes here hand it batches (cuda_wire.h). When that process or its GPU fails, what it had goes to other
// backends and it is started anew; the daemon and its sessions go on.
//
// Thread-safe. `done` is called on lanes; shutdown() must not be called from there.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "daemon/backend/backend.h"
#include "daemon/backend/backend_row.h"
#include "daemon/backend/cuda/cuda_memory.h"
#include "daemon/backend/cuda/cuda_settings.h"
#include "daemon/backend/cuda/cuda_worker.h"
#include "daemon/backend/cuda/staging_turns.h"
#include "daemon/backend/device_host/lane_threads.h"
#include "proto/base/mutex.h"

namespace millrace {

// The row's: backends.cuda.
bool wants_cuda(const Settings& settings);
HostMemory cuda_host_memory(const Settings& settings);
// kInvalid: a GPU that is named and not there; with backends.cuda = "yes" none at all.
Result<std::vector<std::unique_ptr<Backend>>> make_cuda_backends(const Settings& settings,
                                                                 const BackendServices& services);

// Of a lane twice what it has under way. A larger GPU wants larger jobs, as far as half a lane's staging has room.
QueueDepth cuda_queue_depth(const Gpu& gpu, const CudaSettings& settings);

class CudaBackend final : public Backend {
 public:
  // Which the caller begins, so that several come up at once.
  static std::unique_ptr<CudaDevice> device_of(const Gpu& gpu, const CudaSettings& settings);
  // `device`: has begun. `number`: of its name. Errors: CudaDevice::wait_until_begun()'s.
  static Result<std::unique_ptr<Backend>> create(const Gpu& gpu, std::unique_ptr<CudaDevice> device,
                                                 std::uint32_t number, const CudaSettings& settings,
                                                 const BackendServices& services);
  ~CudaBackend() override { shutdown(); }

  // As the process says that has the GPU; as it said last where there is none, or as was known at the start.
  BackendInfo info() const override MILLRACE_EXCLUDES(mutex_);
  QueueDepth queue_depth() const override { return depth_; }
  Result<void> can_make(const SampleFacts& facts, const Recipe& recipe) const override;
  void listen(HealthListener listener) override { device_->health().listen(std::move(listener)); }
  [[nodiscard]] bool try_submit(DecodeJob&& job) override { return lanes_.try_submit(std::move(job)); }
  void shutdown() override;
  TensorMemory* memory() override { return memory_.get(); }

 private:
  CudaBackend(const Gpu& gpu, std::uint32_t number, std::unique_ptr<CudaDevice> device, CudaStaging staging,
              const CudaSettings& settings, const BackendServices& services);

  const std::uint32_t number_;
  const CudaSettings settings_;
  const QueueDepth depth_;
  const BackendInfo info_;  // at the start: name, lanes and memory stay
  mutable Mutex mutex_;
  mutable BackendInfo latest_ MILLRACE_GUARDED_BY(mutex_);
  const CudaStaging staging_;        // of a lane
  std::vector<StagingTurns> turns_;  // of each lane
  const std::unique_ptr<CudaDevice> device_;
  const std::shared_ptr<CudaMemory> memory_;  // shared with sessions' arenas. nullptr: sessions may have none
  device_host::LaneThreads lanes_;
};

}  // namespace millrace
