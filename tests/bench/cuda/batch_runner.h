// One batch after the other on a stream of its own, with a planner and memory of its own. While its batch is on the
// GPU, the caller plans another one on another runner. Thread-bound(its owner); made by the thread that uses it: making it
// makes the device's primary context current, which the launches want.
#pragma once

#include <optional>
#include <span>

#include "daemon/backend/cuda/worker/batch_launch.h"
#include "tests/bench/cuda/gpu_memory.h"

namespace millrace::kernels::cuda::bench {

using millrace::cuda::Kernels;

// When each part of a batch was through.
struct BatchTimes {
  double encoded = 0, upload = 0, tokenise = 0, reconstruct = 0, download = 0;  // seconds each
};

class BatchRunner {
 public:
  BatchRunner(const BatchRecipe& recipe, const Kernels& kernels, const PlannerSettings& settings = {},
              Stream::Priority priority = Stream::Priority::kHigh);

  // Waits for the batch before, plans this one, launches its work and returns. `encoded`: pinned, where requests count
  // from; stays until wait(). `times`: events between the parts, which cost a little; read them with times().
  enum class Timed { kNo, kYes };
  const BatchPlan& submit(std::span<const ImageRequest> requests, std::span<const std::byte> encoded,
                          Timed timed = Timed::kNo);
  // Until the batch is through; nothing where there is none.
  void wait();

  // Of the last batch, after wait().
  std::span<const Status> statuses() const { return {statuses_.as<Status>(), jobs_}; }
  std::vector<std::byte> tensors() const;
  std::uint64_t tokens_made() const;  // by a copy from the GPU
  BatchTimes times() const;
  std::size_t jobs() const { return jobs_; }
  std::size_t upload_bytes() const { return layout_.upload_bytes; }

 private:
  void launch_timed(const BatchPlan& plan, const millrace::cuda::BatchViews& views);

  const Kernels& kernels_;
  Stream stream_;
  Planner planner_;
  GpuMemory encoded_, tables_, workspace_, tensors_;
  PinnedMemory upload_, statuses_;
  WorkspaceLayout layout_;
  const BatchPlan* plan_ = nullptr;
  std::size_t jobs_ = 0, tensor_bytes_ = 0;
  bool in_flight_ = false;
  Event parts_[6];  // the last one: all is through
};

}  // namespace millrace::kernels::cuda::bench
