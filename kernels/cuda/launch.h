// A planned batch onto a GPU: upload, K1, K2. Asynchronous: launches work on the stream that it is given and returns;
// allocates nothing, waits for nothing. All memory is the caller's and stays until the stream is past the batch.
//
//   GpuShape gpu;
//   if (const auto status = read_gpu_shape(gpu); !status.ok()) ...         // once a device
//   const BatchPlan& plan = planner.plan(requests);
//   const WorkspaceLayout layout = workspace_layout(plan, gpu);            // layout.bytes on the GPU
//   write_upload(plan, layout, pinned);                                    // layout.upload_bytes
//   launch(plan, layout, gpu, views, stream);
#pragma once

#include <cstddef>

#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/workspace_layout.h"

namespace millrace::kernels::cuda {

// What launches depend on of the current device.
struct GpuShape {
  int multiprocessors = 0;
  int tokenise_blocks = 0;  // thread blocks of K1 that run at once on the whole device
};

// Sets the kernels up on the current device as well: they take more shared memory than is usual.
CudaStatus read_gpu_shape(GpuShape& shape);

WorkspaceLayout workspace_layout(const BatchPlan& plan, const GpuShape& gpu);

struct BatchViews {
  // On the GPU.
  const std::uint8_t* encoded = nullptr;  // the batch's files, each at ImageRequest::at; aligned to 16 bytes
  DecodeTable* tables = nullptr;          // plan.table_slots of them, the planner's own from batch to batch
  std::byte* tensors = nullptr;           // one for each request, plan.tensor_bytes each; aligned to 16 bytes
  std::byte* workspace = nullptr;         // layout.bytes; aligned to 256
  // In pinned memory of the host.
  const std::byte* upload = nullptr;  // write_upload()'s
  Status* statuses = nullptr;         // for each of plan.jobs, there once the stream is past the batch
};

// The parts of launch(), in this order, for whoever puts events between them. `upload` copies the plan's arrays and the
// batch's new tables.
CudaStatus launch_upload(const BatchPlan& plan, const WorkspaceLayout& layout, const BatchViews& views,
                         cudaStream_t stream);
CudaStatus launch_tokenise(const BatchPlan& plan, const WorkspaceLayout& layout, const GpuShape& gpu,
                           const BatchViews& views, cudaStream_t stream);
CudaStatus launch_reconstruct(const BatchPlan& plan, const WorkspaceLayout& layout, const BatchViews& views,
                              cudaStream_t stream);
CudaStatus launch_download(const BatchPlan& plan, const WorkspaceLayout& layout, const BatchViews& views,
                           cudaStream_t stream);

// REQUIRES: a stream of the current device, not the default one; read_gpu_shape() was called for the device. What a
// tensor of an image that is not kDone holds means nothing. With no job planned nothing is launched.
CudaStatus launch(const BatchPlan& plan, const WorkspaceLayout& layout, const GpuShape& gpu, const BatchViews& views,
                  cudaStream_t stream);

}  // namespace millrace::kernels::cuda
