#include "kernels/cuda/plan/workspace_layout.h"

#include <algorithm>
#include <cstring>

namespace millrace::kernels::cuda {
namespace {

constexpr std::size_t kAlignment = 256;

class WorkspaceDivision {
 public:
  std::size_t take(std::size_t bytes) {
    const std::size_t at = next_;
    next_ = (at + bytes + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  }
  template <class Range>
  std::size_t take_range(const Range& range) {
    return take(range.size() * sizeof *range.data());
  }
  std::size_t next() const { return next_; }

 private:
  std::size_t next_ = 0;
};

}  // namespace

WorkspaceLayout layout_of(const BatchPlan& plan, std::size_t scratch_bytes) {
  WorkspaceLayout layout;
  WorkspaceDivision memory;
  layout.jobs = memory.take_range(plan.jobs);
  layout.tiles = memory.take_range(plan.tiles);
  layout.segments = memory.take_range(plan.segments);
  layout.groups = memory.take_range(plan.groups);
  layout.shapes = memory.take_range(plan.shapes);
  layout.quants = memory.take_range(plan.quants);
  layout.weights = memory.take_range(plan.weights);
  layout.store = memory.take_range(plan.store);
  layout.new_tables = memory.take_range(plan.new_tables);
  layout.picture_jobs = memory.take_range(plan.pictures.jobs);
  layout.steps = memory.take_range(plan.pictures.steps);
  layout.boxes = memory.take_range(plan.pictures.boxes);
  layout.step_tables = memory.take_range(plan.pictures.tables);
  layout.tensor_store = plan.pictures.jobs.empty() ? memory.take(0) : memory.take_range(plan.tensor_store);
  layout.upload_bytes = memory.next();
  layout.statuses = memory.take(plan.jobs.size() * sizeof(Status));
  layout.next_image = memory.take(sizeof(std::uint32_t));
  layout.zeroed_end = memory.next();
  layout.pictures = memory.take(plan.picture_bytes);
  layout.blocks = memory.take(plan.blocks * sizeof(BlockEntry));
  layout.tokens = memory.take(plan.tokens * sizeof(Token));
  layout.scratch = memory.take(scratch_bytes);
  layout.picture_scratch = layout.blocks;
  layout.bytes = std::max<std::size_t>(memory.next(), layout.picture_scratch + plan.pictures.scratch_bytes);
  return layout;
}

void write_upload(const BatchPlan& plan, const WorkspaceLayout& layout, std::span<std::byte> upload) {
  const auto put = [&](std::size_t at, const auto& range) {
    const std::size_t bytes = range.size() * sizeof *range.data();
    if (bytes > 0) std::memcpy(upload.data() + at, range.data(), bytes);
  };
  put(layout.jobs, plan.jobs);
  put(layout.tiles, plan.tiles);
  put(layout.segments, plan.segments);
  put(layout.groups, plan.groups);
  put(layout.shapes, plan.shapes);
  put(layout.quants, plan.quants);
  put(layout.weights, plan.weights);
  put(layout.store, plan.store);
  put(layout.new_tables, plan.new_tables);
  put(layout.picture_jobs, plan.pictures.jobs);
  put(layout.steps, plan.pictures.steps);
  put(layout.boxes, plan.pictures.boxes);
  put(layout.step_tables, plan.pictures.tables);
  if (!plan.pictures.jobs.empty()) put(layout.tensor_store, plan.tensor_store);
}

}  // namespace millrace::kernels::cuda
