// A planned batch on the host executor, from bytes to tensors, as a GPU does it: what tests compare, and
// what a GPU's results can be compared with. Each array is memory of its own and just as long as the plan says, so that
// sanitizers see a kernel that leaves it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/plan/plan.h"
#include "kernels/cuda/tokenise/tokenise_args.h"

namespace millrace::kernels::cuda {

struct HostBatch {
  std::vector<std::byte> tensors;  // one for each request
  std::vector<Status> statuses;    // of plan.jobs
};

// Thread-bound(its owner). One for each planner: it keeps the tables of its batches.
class HostRunner {
 public:
  // `encoded`: the files at ImageRequest::at. `seed` draws the turns of blocks and threads; `threads`: of a block of
  // the tokeniser.
  HostBatch run(const BatchPlan& plan, std::span<const std::uint8_t> encoded, std::uint32_t seed,
                int threads = kUsualTokeniseThreads);

 private:
  std::vector<DecodeTable> tables_;
};

}  // namespace millrace::kernels::cuda
