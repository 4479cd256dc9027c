// How a batch's memory on the GPU is divided: what the host uploads in one piece, then what the kernels leave for each
// other. Offsets in bytes, each a multiple of 256. Host only. Values.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/cuda/plan/plan.h"

namespace millrace::kernels::cuda {

struct WorkspaceLayout {
  // Uploaded: the plan's arrays.
  std::size_t jobs = 0, tiles = 0, segments = 0, groups = 0, shapes = 0, quants = 0, weights = 0, store = 0,
              new_tables = 0, picture_jobs = 0, steps = 0, boxes = 0, step_tables = 0, tensor_store = 0;
  std::size_t upload_bytes = 0;
  // Zeroed before the kernels run.
  std::size_t statuses = 0, next_image = 0, zeroed_end = 0;
  std::size_t pictures = 0, blocks = 0, tokens = 0, scratch = 0;
  std::size_t picture_scratch = 0;  // in the place of blocks, tokens and scratch: K3 works when these are read no more
  std::size_t bytes = 0;
};

// `scratch_bytes`: of all thread blocks of the tokeniser.
WorkspaceLayout layout_of(const BatchPlan& plan, std::size_t scratch_bytes);

// The plan's arrays at their offsets. REQUIRES: `upload` has layout.upload_bytes.
void write_upload(const BatchPlan& plan, const WorkspaceLayout& layout, std::span<std::byte> upload);

}  // namespace millrace::kernels::cuda
