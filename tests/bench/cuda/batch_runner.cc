#include "tests/bench/cuda/batch_runner.h"

#include <numeric>

namespace millrace::kernels::cuda::bench {

BatchRunner::BatchRunner(const BatchRecipe& recipe, const GpuShape& gpu, const PlannerSettings& settings,
                         Stream::Priority priority)
    : gpu_(gpu), stream_(priority), planner_(recipe, settings) {
  tables_.reserve(settings.table_slots * sizeof(DecodeTable));
}

const BatchPlan& BatchRunner::submit(std::span<const ImageRequest> requests, std::span<const std::byte> encoded,
                                     Timed timed) {
  wait();
  const BatchPlan& plan = planner_.plan(requests);
  plan_ = &plan;
  jobs_ = plan.jobs.size();
  tensor_bytes_ = plan.tensor_bytes * requests.size();
  layout_ = workspace_layout(plan, gpu_);
  workspace_.reserve(layout_.bytes);
  encoded_.reserve(encoded.size());
  tensors_.reserve(tensor_bytes_);
  statuses_.reserve(jobs_ * sizeof(Status));
  write_upload(plan, layout_, {upload_.reserve(layout_.upload_bytes), layout_.upload_bytes});
  const BatchViews views{.encoded = encoded_.as<std::uint8_t>(),
                         .tables = tables_.as<DecodeTable>(),
                         .tensors = tensors_.data(),
                         .workspace = workspace_.data(),
                         .upload = upload_.data(),
                         .statuses = statuses_.as<Status>()};
  if (timed == Timed::kYes) parts_[0].record(stream_);
  MILLRACE_REQUIRE_CUDA(
      cudaMemcpyAsync(encoded_.data(), encoded.data(), encoded.size(), cudaMemcpyHostToDevice, stream_.get()));
  if (timed == Timed::kYes) {
    launch_timed(plan, views);
  } else {
    require(launch(plan, layout_, gpu_, views, stream_.get()));
  }
  parts_[5].record(stream_);
  in_flight_ = true;
  return plan;
}

// As launch(), with events between the parts.
void BatchRunner::launch_timed(const BatchPlan& plan, const BatchViews& views) {
  parts_[1].record(stream_);
  require(launch_upload(plan, layout_, views, stream_.get()));
  parts_[2].record(stream_);
  require(launch_tokenise(plan, layout_, gpu_, views, stream_.get()));
  parts_[3].record(stream_);
  require(launch_reconstruct(plan, layout_, views, stream_.get()));
  parts_[4].record(stream_);
  require(launch_download(plan, layout_, views, stream_.get()));
}

void BatchRunner::wait() {
  if (in_flight_) parts_[5].wait();
  in_flight_ = false;
}

BatchTimes BatchRunner::times() const {
  return {.encoded = parts_[1].seconds_since(parts_[0]),
          .upload = parts_[2].seconds_since(parts_[1]),
          .tokenise = parts_[3].seconds_since(parts_[2]),
          .reconstruct = parts_[4].seconds_since(parts_[3]),
          .download = parts_[5].seconds_since(parts_[4])};
}

std::vector<std::byte> BatchRunner::tensors() const {
  std::vector<std::byte> copy(tensor_bytes_);
  MILLRACE_REQUIRE_CUDA(
      cudaMemcpyAsync(copy.data(), tensors_.data(), copy.size(), cudaMemcpyDeviceToHost, stream_.get()));
  stream_.wait();
  return copy;
}

std::uint64_t BatchRunner::tokens_made() const {
  std::vector<BlockEntry> blocks(plan_->blocks);
  MILLRACE_REQUIRE_CUDA(cudaMemcpyAsync(blocks.data(), workspace_.data() + layout_.blocks,
                                        blocks.size() * sizeof(BlockEntry), cudaMemcpyDeviceToHost, stream_.get()));
  stream_.wait();
  return std::accumulate(blocks.begin(), blocks.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const BlockEntry& block) { return sum + block.tokens; });
}

}  // namespace millrace::kernels::cuda::bench
