// A lane of the process that owns a GPU: plans a batch, copies it there, has it made, copies the tensors back.
//
//   staging: files ──▶ GPU: files ──K1 or unpacking, K2──▶ tensors ──▶ staging: tensors
//                                                                  └─▶ a session's memory on the GPU, those that are good
//   plan ──▶ upload ──▶ GPU: workspace     ──▶ statuses ──▶ CudaOrder::verdict
//
// The GPU's memory is one block, taken at the first batch and given back when there is none for a while:
//
//   │ tables of a planner, of another one │ files │ tensors │ workspace │        each batch divides the rest anew
//
// It believes the daemon, and nothing of the files. Thread-bound(the lane's thread).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "daemon/backend/cuda/cuda_wire.h"
#include "daemon/backend/cuda/worker/batch_launch.h"
#include "daemon/backend/cuda/worker/exported_memory.h"
#include "daemon/backend/cuda/worker/gpu.h"

namespace millrace::cuda {

class GpuLane {
 public:
  // On the lane's thread, whose current context it becomes. `staging` is mapped as long as the lane is. All of it is
  // pinned; that and the errors are the driver's.
  static Result<std::unique_ptr<GpuLane>> create(const GpuContext& context, const Kernels& kernels,
                                                 const ExportedMemories& memories, std::byte* staging,
                                                 const CudaStaging& layout, std::size_t device_bytes);
  ~GpuLane();

  // Answers in the orders. kExhausted: it does not fit the memory that the lane has of the GPU, and nothing was made;
  // fewer images may. kUnsupported: it has none, and others have all of it. kNotFound: the memory that the tensors are to
  // go to is not there; kInvalid: they would not lie in it. kUnavailable: the context is broken. When it returns the GPU is through with the staging, but for kUnavailable.
  Result<void> make(const CudaBatch& batch);

  // Gives the GPU's memory back.
  void rest();

 private:
  struct PlannerOfRecipe {
    kernels::cuda::BatchRecipe recipe;
    std::unique_ptr<kernels::cuda::Planner> planner;
    std::size_t tables;  // where its tables are in the block
  };
  // A batch's parts of the block.
  struct Division {
    std::size_t encoded, tensors, workspace, end;
  };

  GpuLane(const GpuContext& context, const Kernels& kernels, const ExportedMemories& memories, std::byte* staging,
          const CudaStaging& layout, std::size_t device_bytes);
  Result<void> prepare();
  Result<void> take_memory();
  PlannerOfRecipe& planner_for(const CudaBatch& batch);
  Result<void> run(const PlannerOfRecipe& planner, const BatchPlan& plan, const CudaBatch& batch);
  Result<void> deliver(const BatchPlan& plan, const CudaBatch& batch, CUdeviceptr tensors);
  Result<void> enqueue(const PlannerOfRecipe& planner, const BatchPlan& plan, const WorkspaceLayout& layout,
                       const Division& at, const CudaBatch& batch);
  std::vector<kernels::cuda::ImageRequest> requests_of(const CudaBatch& batch);
  void answer(const BatchPlan& plan) const;

  const GpuContext& context_;
  const Kernels& kernels_;
  const ExportedMemories& memories_;
  std::byte* const staging_;
  const CudaBatchRooms rooms_;  // in it
  const CudaStaging layout_;
  const std::size_t device_bytes_;
  GpuMemory memory_;
  PinnedMemory pinned_, plans_;  // the staging; statuses, and what is uploaded of a plan
  GpuStream stream_;
  std::vector<kernels::cuda::Erased> erased_;      // of the batch, as the next ones
  std::vector<kernels::cuda::ViewRequest> views_;  // of the batch
  std::list<PlannerOfRecipe> planners_;            // the one that was used last first; their tables lie apart
  std::chrono::steady_clock::time_point taken_{};  // the memory, or the attempt
};

}  // namespace millrace::cuda
