// Half a lane of the CUDA backend: takes a job's samples through the process that owns the GPU, a batch after the other.
// The other half does the same with another job meanwhile: what is on the GPU and what is copied and planned overlap.
//
//   tasks ──look──▶ refused, or a batch ──▶ files into the staging ──▶ ask ──▶ tensors from the staging
//                                              ▲ half of them: kExhausted ──┘  (or they are where they belong,
//                                              └ one alone: with all of the lane    on the GPU)
//
// A packed form that is kept of a file goes into the staging instead of it. Where that does not decode and there is no
// file, the sample is read again.
//
// Thread-bound(the half's thread).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "daemon/backend/backend.h"
#include "daemon/backend/cuda/cuda_worker.h"
#include "daemon/backend/cuda/staging_turns.h"
#include "daemon/backend/device_host/lane_work.h"
#include "daemon/model/limits.h"

namespace millrace {

struct CudaHalf {
  std::uint32_t lane = 0, half = 0;
};

class CudaLane {
 public:
  // `device` and `turns`, the lane's, outlive it. `memory`: the device's own, in which sessions' tensors may be wanted.
  CudaLane(CudaDevice& device, StagingTurns& turns, MemoryId memory, CudaHalf half, CudaStaging staging,
           std::chrono::milliseconds patience)
      : device_(device), turns_(turns), memory_(memory), half_(half), staging_(staging), patience_(patience) {}

  // An outcome for each task, in order. `stopped` is asked before each batch, also of the halves of one.
  std::vector<SampleOutcome> run(const DecodeJob& job, const SampleLimits& limits,
                                 const std::function<bool()>& stopped);

 private:
  using Work = device_host::LaneWork;
  using Indices = Work::Indices;

  bool is_for_gpu(Work& work, std::size_t i) const;
  std::vector<std::size_t> take(Work& work, std::size_t& next) const;
  bool fit_half(const Work& work, Indices tasks) const;
  void make(Work& work, Indices tasks);
  Result<void> make_together(Work& work, Indices tasks, bool whole);
  Result<void> ask(const Work& work, Indices tasks, CudaLaneChannel& channel);
  void collect(Work& work, Indices tasks, const CudaLaneChannel& channel) const;

  CudaDevice& device_;
  StagingTurns& turns_;
  const MemoryId memory_;
  const CudaHalf half_;
  const CudaStaging staging_;
  const std::chrono::milliseconds patience_;
};

}  // namespace millrace
