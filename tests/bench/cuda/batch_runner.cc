#include "tests/bench/cuda/batch_runner.h"

#include <numeric>

namespace millrace::kernels::cuda::bench {

BatchRunner::BatchRunner(const BatchRecipe& recipe, const Kernels& kernels, const PlannerSettings& settings,
                         Stream::Priority priority)
    : kernels_(kernels), stream_(priority), planner_(recipe, settings) {
  tables_.reserve(settings.table_slots * sizeof(DecodeTable));
}

const BatchPlan& BatchRunner::submit(std::span<const ImageRequest> requests, std::span<const std::byte> encoded,
                                     Timed timed) {
  wait();
  const BatchPlan& plan = planner_.plan(requests);
  plan_ = &plan;
  jobs_ = plan.jobs.size();
  tensor_bytes_ = plan.tensor_bytes * requests.size();
  layout_ = millrace::cuda::workspace_layout(plan, kernels_.shape());
  workspace_.reserve(layout_.bytes);
  encoded_.reserve(encoded.size());
  tensors_.reserve(tensor_bytes_);
  statuses_.reserve(jobs_ * sizeof(Status));
  write_upload(plan, layout_, {upload_.reserve(layout_.upload_bytes), layout_.upload_bytes});
  const millrace::cuda::BatchViews views{.encoded = encoded_.address(),
                                         .tables = tables_.address(),
                                         .tensors = tensors_.address(),
                                         .workspace = workspace_.address(),
                                         .upload = upload_.data(),
                                         .statuses = statuses_.as<Status>()};
  if (timed == Timed::kYes) parts_[0].record(stream_);
  MILLRACE_REQUIRE_CUDA(
      cudaMemcpyAsync(encoded_.data(), encoded.data(), encoded.size(), cudaMemcpyHostToDevice, stream_.get()));
  if (timed == Timed::kYes) {
    launch_timed(plan, views);
  } else {
    require(kernels_.launch(plan, layout_, views, stream_.driver_stream()));
  }
  parts_[5].record(stream_);
  in_flight_ = true;
  return plan;
}

// As Kernels::launch(), with events between the parts.
void BatchRunner::launch_timed(const BatchPlan& plan, const millrace::cuda::BatchViews& views) {
  const auto stream = stream_.driver_stream();
  parts_[1].record(stream_);
  require(kernels_.upload(plan, layout_, views, stream));
  parts_[2].record(stream_);
  require(kernels_.tokenise(plan, layout_, views, stream));
  parts_[3].record(stream_);
  require(kernels_.reconstruct(plan, layout_, views, stream));
  parts_[4].record(stream_);
  require(kernels_.download(plan, layout_, views, stream));
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
