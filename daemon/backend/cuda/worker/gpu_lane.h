// Half a lane of the process that owns a GPU: plans a batch, copies it there, has it made, copies the tensors back. It has a
// stream of its own; while its batch is on the GPU, the lane's other half does the same with the next one.
//
//   staging: files ──▶ GPU: files ──K1 or unpacking, K2──▶ tensors ──▶ staging: tensors
//                                                                  └─▶ a session's memory on the GPU, those that are good
//   plan ──▶ upload ──▶ GPU: workspace     ──▶ statuses ──▶ CudaOrder::verdict
//
// Each batch divides its piece of the GPU's memory (lane_room.h) anew:
//
//   │ files │ tensors │ workspace │
//
// It believes the daemon, and nothing of the files. Thread-bound(the half's thread).
#pragma once

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
#include "daemon/backend/cuda/worker/lane_room.h"

namespace millrace::cuda {

class GpuLane {
 public:
  // Of the GPU's memory, for planners of one half.
  static std::size_t tables_bytes();

  // On the half's thread, whose current context it becomes. `room`: the lane's.
  static Result<std::unique_ptr<GpuLane>> create(const GpuContext& context, const Kernels& kernels,
                                                 const ExportedMemories& memories, LaneRoom& room, std::uint32_t half);

  // Answers in the orders. kExhausted: it does not fit the memory that the lane has of the GPU, and nothing was made;
  // fewer images may. kUnsupported: it has none, and others have all of it. kNotFound: the memory that the tensors are to
  // go to is not there; kInvalid: they would not lie in it. kUnavailable: the context is broken. When it returns the GPU is
  // through with the staging, but for kUnavailable.
  Result<void> make(const CudaBatch& batch);

  // Wants none of the GPU's memory until the next batch.
  void rest() { room_.rest(half_); }

 private:
  struct PlannerOfRecipe {
    kernels::cuda::BatchRecipe recipe;
    std::unique_ptr<kernels::cuda::Planner> planner;
    std::size_t tables;  // where its tables are among those of the half
  };
  // A batch's parts of its piece.
  struct Division {
    std::size_t encoded, tensors, workspace, end;
  };

  GpuLane(const GpuContext& context, const Kernels& kernels, const ExportedMemories& memories, LaneRoom& room,
          std::uint32_t half)
      : context_(context),
        kernels_(kernels),
        memories_(memories),
        room_(room),
        half_(half),
        stream_(context.driver()) {}
  Result<void> take_room(const CudaBatch& batch);
  Result<void> make_there(const CudaBatch& batch);
  PlannerOfRecipe& planner_for(const CudaBatch& batch);
  Result<void> run(const PlannerOfRecipe& planner, const BatchPlan& plan, const CudaBatch& batch);
  Result<void> deliver(const BatchPlan& plan, const CudaBatch& batch, CUdeviceptr tensors);
  Result<void> enqueue(const PlannerOfRecipe& planner, const BatchPlan& plan, const WorkspaceLayout& layout,
                       const Division& at, const CudaBatch& batch);
  std::vector<kernels::cuda::ImageRequest> requests_of(const CudaBatch& batch);
  void answer(const BatchPlan& plan) const;

  const kernels::cuda::Status* statuses() const {
    return reinterpret_cast<const kernels::cuda::Status*>(plans_.data());
  }

  const GpuContext& context_;
  const Kernels& kernels_;
  const ExportedMemories& memories_;
  LaneRoom& room_;
  const std::uint32_t half_;
  GpuStream stream_;
  std::list<PlannerOfRecipe> planners_;  // the one that was used last first; their tables lie apart
  // Of the batch in the making.
  CudaPart part_{};
  CudaBatchRooms rooms_{};
  std::vector<kernels::cuda::Erased> erased_;
  std::vector<kernels::cuda::ViewRequest> views_;
  std::span<std::byte> plans_;  // statuses, and what is uploaded of a plan
  LaneRoom::Piece piece_{};
};

}  // namespace millrace::cuda
