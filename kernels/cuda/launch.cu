#include "kernels/cuda/launch.h"

#include <algorithm>

#include "kernels/cuda/device_kernels.h"

namespace millrace::kernels::cuda {
namespace {

template <class T>
T* at(const BatchViews& views, std::size_t offset) {
  return reinterpret_cast<T*>(views.workspace + offset);
}

int tokenise_blocks(const BatchPlan& plan, const GpuShape& gpu) {
  return std::min(gpu.tokenise_blocks, static_cast<int>(plan.jobs.size()));
}

}  // namespace

CudaStatus read_gpu_shape(GpuShape& shape) {
  int device = 0, on_multiprocessor = 0;
  MILLRACE_RETURN_IF_CUDA_FAILED(cudaGetDevice(&device));
  MILLRACE_RETURN_IF_CUDA_FAILED(
      cudaDeviceGetAttribute(&shape.multiprocessors, cudaDevAttrMultiProcessorCount, device));
  if (const CudaStatus status = prepare_tokenise(on_multiprocessor); !status.ok()) return status;
  shape.tokenise_blocks = shape.multiprocessors * on_multiprocessor;
  return prepare_reconstruct();
}

WorkspaceLayout workspace_layout(const BatchPlan& plan, const GpuShape& gpu) {
  const auto blocks = static_cast<std::size_t>(tokenise_blocks(plan, gpu));
  return layout_of(plan, blocks * scratch_bytes(TokeniseShape{}, kTokeniseThreads));
}

CudaStatus launch_upload(const BatchPlan& plan, const WorkspaceLayout& layout, const BatchViews& views,
                         cudaStream_t stream) {
  MILLRACE_RETURN_IF_CUDA_FAILED(
      cudaMemcpyAsync(views.workspace, views.upload, layout.upload_bytes, cudaMemcpyHostToDevice, stream));
  MILLRACE_RETURN_IF_CUDA_FAILED(
      cudaMemsetAsync(views.workspace + layout.statuses, 0, layout.zeroed_end - layout.statuses, stream));
  const auto* const tables = at<const DecodeTable>(views, layout.new_tables);
  for (const TableRun& run : plan.table_runs) {
    MILLRACE_RETURN_IF_CUDA_FAILED(cudaMemcpyAsync(views.tables + run.slot, tables + run.first,
                                                   run.count * sizeof(DecodeTable), cudaMemcpyDeviceToDevice, stream));
  }
  return {};
}

CudaStatus launch_tokenise(const BatchPlan& plan, const WorkspaceLayout& layout, const GpuShape& gpu,
                           const BatchViews& views, cudaStream_t stream) {
  const TokeniseArgs args{.jobs = at<const ImageJob>(views, layout.jobs),
                          .images = static_cast<std::uint32_t>(plan.jobs.size()),
                          .bytes = views.encoded,
                          .tables = views.tables,
                          .segments = at<const Segment>(views, layout.segments),
                          .tokens = at<Token>(views, layout.tokens),
                          .blocks = at<BlockEntry>(views, layout.blocks),
                          .statuses = at<Status>(views, layout.statuses),
                          .work = nullptr,
                          .next_image = at<std::uint32_t>(views, layout.next_image),
                          .scratch = at<unsigned char>(views, layout.scratch),
                          .shape = {}};
  return launch_tokenise(args, tokenise_blocks(plan, gpu), stream);
}

CudaStatus launch_reconstruct(const BatchPlan& plan, const WorkspaceLayout& layout, const BatchViews& views,
                              cudaStream_t stream) {
  const ReconstructArgs args{.spec = plan.spec,
                             .tiles = at<const Tile>(views, layout.tiles),
                             .images = at<const ImageJob>(views, layout.jobs),
                             .blocks = at<const BlockEntry>(views, layout.blocks),
                             .tokens = at<const Token>(views, layout.tokens),
                             .quants = at<const std::uint16_t>(views, layout.quants),
                             .weights = at<const std::int32_t>(views, layout.weights),
                             .store = at<const std::uint32_t>(views, layout.store),
                             .tensors = reinterpret_cast<std::uint8_t*>(views.tensors),
                             .status = at<Status>(views, layout.statuses)};
  return launch_reconstruct(args, static_cast<int>(plan.tiles.size()), stream);
}

CudaStatus launch_download(const BatchPlan& plan, const WorkspaceLayout& layout, const BatchViews& views,
                           cudaStream_t stream) {
  return checked(cudaMemcpyAsync(views.statuses, at<const Status>(views, layout.statuses),
                                 plan.jobs.size() * sizeof(Status), cudaMemcpyDeviceToHost, stream),
                 "cudaMemcpyAsync(statuses)");
}

CudaStatus launch(const BatchPlan& plan, const WorkspaceLayout& layout, const GpuShape& gpu, const BatchViews& views,
                  cudaStream_t stream) {
  if (plan.jobs.empty()) return {};
  if (const auto status = launch_upload(plan, layout, views, stream); !status.ok()) return status;
  if (const auto status = launch_tokenise(plan, layout, gpu, views, stream); !status.ok()) return status;
  if (const auto status = launch_reconstruct(plan, layout, views, stream); !status.ok()) return status;
  return launch_download(plan, layout, views, stream);
}

}  // namespace millrace::kernels::cuda
