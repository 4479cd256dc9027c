// One lane of the CUDA backend: takes a job's samples through the process that owns the GPU, a batch after the other.
//
//   tasks ──look──▶ refused, or a batch ──▶ files into the staging ──▶ ask ──▶ tensors from the staging
//                                              ▲ half of them: kExhausted ──┘  (or they are where they belong,
//                                                                                   on the GPU)
//
// A packed form that is kept of a file goes into the staging instead of it. Where that is no use and there is no file, the
// sample is read again.
//
// Thread-bound(the lane's thread).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "daemon/backend/backend.h"
#include "daemon/backend/cuda/cuda_worker.h"
#include "daemon/backend/device_host/lane_work.h"
#include "daemon/model/limits.h"

namespace millrace {

class CudaLane {
 public:
  // `device` outlives the lane. `memory`: the device's own, in which sessions' tensors may be wanted.
  CudaLane(CudaDevice& device, MemoryId memory, std::uint32_t number, CudaStaging staging,
           std::chrono::milliseconds patience)
      : device_(device), memory_(memory), number_(number), staging_(staging), patience_(patience) {}

  // An outcome for each task, in order. `stopped` is asked before each batch, also of the halves of one.
  std::vector<SampleOutcome> run(const DecodeJob& job, const SampleLimits& limits,
                                 const std::function<bool()>& stopped);

 private:
  using Work = device_host::LaneWork;
  using Indices = Work::Indices;

  bool is_for_gpu(Work& work, std::size_t i) const;
  std::vector<std::size_t> take(Work& work, std::size_t& next) const;
  void make(Work& work, Indices tasks);
  Result<void> ask(const Work& work, Indices tasks, CudaWorker& worker);
  void collect(Work& work, Indices tasks, const CudaLaneChannel& channel) const;

  CudaDevice& device_;
  const MemoryId memory_;
  const std::uint32_t number_;
  const CudaStaging staging_;
  const std::chrono::milliseconds patience_;
};

}  // namespace millrace
