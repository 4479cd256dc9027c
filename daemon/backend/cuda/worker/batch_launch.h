// A planned batch onto a GPU by the driver's API: upload, K1, unpacking, K2, K3, download of the statuses. Asynchronous: launches work
// on the stream that it is given and returns; allocates nothing, waits for nothing. All memory is the caller's and stays
// until the stream is past the batch.
//
//   MILLRACE_TRY(const Kernels kernels, Kernels::load(driver, device, kernel_image()));    // once a device
//   const BatchPlan& plan = planner.plan(requests);
//   const WorkspaceLayout layout = workspace_layout(plan, kernels.shape());               // layout.bytes on the GPU
//   write_upload(plan, layout, pinned);                                                   // layout.upload_bytes
//   MILLRACE_TRY_VOID(kernels.launch(plan, layout, views, stream));
//
// Every call wants the device's primary context to be the calling thread's current one.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/cuda/plan/workspace_layout.h"
#include "proto/base/result.h"
#include "proto/cuda/driver.h"

namespace millrace::cuda {

using kernels::cuda::BatchPlan;
using kernels::cuda::WorkspaceLayout;

// What launches depend on of a device.
struct GpuShape {
  int multiprocessors = 0;
  int tokenise_blocks = 0;  // thread blocks of K1 that run at once on the whole device
};

WorkspaceLayout workspace_layout(const BatchPlan& plan, const GpuShape& gpu);

struct BatchViews {
  // On the GPU.
  CUdeviceptr encoded = 0;    // the batch's files, each at ImageRequest::at; aligned to 16 bytes
  CUdeviceptr tables = 0;     // plan.table_slots DecodeTables, the planner's own from batch to batch
  CUdeviceptr tensors = 0;    // plan.tensors_bytes; aligned to 16 bytes
  CUdeviceptr workspace = 0;  // layout.bytes; aligned to 256
  // In pinned memory of the host.
  const std::byte* upload = nullptr;          // write_upload()'s
  kernels::cuda::Status* statuses = nullptr;  // for each of plan.jobs, there once the stream is past the batch
};

// The kernels on one device. Owns the module: ends before its context and the driver's table do, and not before its
// launches are through.
// Immutable: any thread whose context is current may launch, on streams of its own.
class Kernels {
 public:
  // `image`: a fat binary; copied. Sets the kernels up as well: they take more shared memory than is usual. Costs
  // milliseconds, and a compilation by the driver on a GPU for which the image has PTX alone.
  // kUnsupported: no image, or none that this driver takes for this GPU; the message says what would be needed.
  static Result<Kernels> load(const Driver& driver, CUdevice device, std::span<const std::byte> image);

  Kernels(Kernels&& other) noexcept;
  Kernels& operator=(Kernels&& other) noexcept;
  ~Kernels();

  const GpuShape& shape() const { return shape_; }

  // REQUIRES: a stream of the device, not the default one; a layout for shape(). What a tensor of an image that is not
  // kDone holds means nothing. With no job planned nothing is launched.
  Result<void> launch(const BatchPlan& plan, const WorkspaceLayout& layout, const BatchViews& views,
                      CUstream stream) const;

  // The parts of launch(), in this order, for a caller that puts events between them. REQUIRES: a planned job. `upload`
  // copies the plan's arrays and the batch's new tables; `tokenise` launches nothing without a file, `unpack` nothing
  // without a packed image, `augment` nothing without a picture.
  Result<void> upload(const BatchPlan& plan, const WorkspaceLayout& layout, const BatchViews& views,
                      CUstream stream) const;
  Result<void> tokenise(const BatchPlan& plan, const WorkspaceLayout& layout, const BatchViews& views,
                        CUstream stream) const;
  Result<void> unpack(const BatchPlan& plan, const WorkspaceLayout& layout, const BatchViews& views,
                      CUstream stream) const;
  Result<void> reconstruct(const BatchPlan& plan, const WorkspaceLayout& layout, const BatchViews& views,
                           CUstream stream) const;
  Result<void> augment(const BatchPlan& plan, const WorkspaceLayout& layout, const BatchViews& views,
                       CUstream stream) const;
  Result<void> download(const BatchPlan& plan, const WorkspaceLayout& layout, const BatchViews& views,
                        CUstream stream) const;

 private:
  explicit Kernels(const Driver& driver) : driver_(&driver) {}
  Result<void> prepare(CUdevice device);

  const Driver* driver_;
  CUmodule module_ = nullptr;
  CUfunction tokenise_ = nullptr, unpack_ = nullptr, reconstruct_ = nullptr, augment_ = nullptr;
  GpuShape shape_;
};

}  // namespace millrace::cuda
