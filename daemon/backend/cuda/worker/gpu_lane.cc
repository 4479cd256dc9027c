#include "daemon/backend/cuda/worker/gpu_lane.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace millrace::cuda {
namespace {

using kernels::cuda::BatchRecipe;
using kernels::cuda::ImageKind;
using kernels::cuda::ImageRequest;
using kernels::cuda::Planner;
using kernels::cuda::Status;
using kernels::cuda::ViewRequest;

constexpr std::size_t kPlanners = 2;
constexpr std::uint32_t kTableSlots = 1024;  // all that a batch of the most images may bring
constexpr std::size_t kTablesBytes = kTableSlots * sizeof(kernels::cuda::DecodeTable);
constexpr std::size_t kStatusBytes = 4096;
constexpr std::size_t kAligned = LaneRoom::kAligned;
constexpr std::uint32_t kMostScanBytes = 8 << 20;  // one thread block walks a scan, and the batch waits for it
static_assert(kMostCudaViews * sizeof(Status) <= kStatusBytes);

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + kAligned - 1) / kAligned * kAligned;
}

BatchRecipe recipe_of(const CudaBatch& batch) {
  BatchRecipe recipe{.store = {.dtype = static_cast<kernels::DType>(batch.dtype),
                               .layout = static_cast<kernels::Layout>(batch.layout),
                               .channels = static_cast<kernels::ChannelOrder>(batch.channels),
                               .range = static_cast<kernels::ValueRange>(batch.range)},
                     .fidelity = batch.fast != 0 ? kernels::cuda::Fidelity::kFast : kernels::cuda::Fidelity::kExact};
  if (batch.normalise != 0) {
    kernels::Normalise normalise;
    std::copy_n(std::begin(batch.mean), 3, normalise.mean.begin());
    std::copy_n(std::begin(batch.std), 3, normalise.std.begin());
    recipe.store.normalise = normalise;
  }
  if (batch.patch_width != 0) {
    recipe.store.patches = {static_cast<int>(batch.patch_width), static_cast<int>(batch.patch_height),
                            static_cast<int>(batch.patch_merge), static_cast<int>(batch.patch_temporal)};
  }
  return recipe;
}

bool are_alike(const BatchRecipe& a, const BatchRecipe& b) {
  return a.store == b.store && a.order == b.order && a.fidelity == b.fidelity;
}

kernels::Box box_of(const CudaBox& box) {
  return {box.left, box.top, box.width, box.height};
}

ViewRequest request_of(const CudaView& view) {
  ViewRequest request{.crop = box_of(view.crop),
                      .flip = view.flip != 0 ? kernels::Flip::kHorizontal : kernels::Flip::kNone,
                      .resized = {view.resized_width, view.resized_height},
                      .window = box_of(view.window),
                      .size = {view.window.width, view.window.height},
                      .filter = static_cast<kernels::Filter>(view.filter)};
  if (view.padded != 0) {
    request.canvas = kernels::cuda::Canvas{.mode = static_cast<kernels::cuda::PadMode>(view.pad),
                                           .fill = {view.fill[0], view.fill[1], view.fill[2]},
                                           .resized = request.resized,
                                           .inner = box_of(view.inner),
                                           .shown = box_of(view.shown)};
  }
  return request;
}

// Whether it is the packed image itself that is no use.
bool is_broken(const CudaOrder& order, std::string_view why) {
  return order.packed != 0 && (why == kernels::cuda::kBrokenPacked || why == kernels::cuda::kAnotherSize);
}

void refuse(CudaOrder& order, std::string_view why, bool broken) {
  order.verdict = broken ? 2 : 1;
  const std::size_t length = std::min(why.size(), sizeof order.why - 1);
  std::memcpy(order.why, why.data(), length);
  order.why[length] = '\0';
}

std::string_view words_of(Status status) {
  return status == Status::kNotInTime ? "its pieces did not find each other in time" : "odd or damaged data";
}

Error too_much(const std::string& what) {
  return Error{Code::kExhausted, "more at once than " + what + " room for"};
}

}  // namespace

std::size_t GpuLane::tables_bytes() {
  return aligned(kPlanners * kTablesBytes);
}

Result<std::unique_ptr<GpuLane>> GpuLane::create(const GpuContext& context, const Kernels& kernels,
                                                 const ExportedMemories& memories, LaneRoom& room, std::uint32_t half) {
  MILLRACE_TRY_VOID(context.use());
  std::unique_ptr<GpuLane> lane(new GpuLane(context, kernels, memories, room, half));
  MILLRACE_TRY_VOID(lane->stream_.create());
  return lane;
}

// What planners believe to be on the GPU went with another block.
Result<void> GpuLane::take_room(const CudaBatch& batch) {
  const bool whole = batch.whole != 0;
  part_ = whole ? room_.layout().whole(half_) : room_.layout().half(half_);
  rooms_ = rooms_at(room_.staging() + part_.rooms_at);
  plans_ = room_.plans(half_, whole);
  const std::uint64_t before = piece_.block;
  MILLRACE_TRY(piece_, room_.take(half_, whole));
  if (piece_.block != before) planners_.clear();
  return {};
}

// Its own, or another one's place.
GpuLane::PlannerOfRecipe& GpuLane::planner_for(const CudaBatch& batch) {
  const BatchRecipe recipe = recipe_of(batch);
  const auto found = std::find_if(planners_.begin(), planners_.end(),
                                  [&](const PlannerOfRecipe& planner) { return are_alike(planner.recipe, recipe); });
  if (found != planners_.end()) {
    planners_.splice(planners_.begin(), planners_, found);
    return planners_.front();
  }
  if (planners_.size() == kPlanners) planners_.pop_back();
  std::size_t tables = 0;
  while (std::any_of(planners_.begin(), planners_.end(), [&](const PlannerOfRecipe& p) { return p.tables == tables; }))
    tables += kTablesBytes;
  planners_.push_front(
      {recipe,
       std::make_unique<Planner>(
           recipe, kernels::cuda::PlannerSettings{.table_slots = kTableSlots, .most_scan_bytes = kMostScanBytes}),
       tables});
  return planners_.front();
}

std::vector<ImageRequest> GpuLane::requests_of(const CudaBatch& batch) {
  const auto* const files = reinterpret_cast<const std::uint8_t*>(room_.staging() + part_.encoded_at);
  erased_.clear();
  for (const CudaErased& erased : rooms_.erased.first(batch.erased))
    erased_.push_back({box_of(erased.box), {erased.value[0], erased.value[1], erased.value[2]}});
  views_.clear();
  for (const CudaView& view : rooms_.views.first(batch.views)) {
    ViewRequest& request = views_.emplace_back(request_of(view));
    request.operations = rooms_.steps.subspan(view.first_step, view.steps);
    request.erased = std::span(erased_).subspan(view.first_erased, view.erased);
  }
  std::vector<ImageRequest> requests;
  std::size_t first = 0;
  for (const CudaOrder& order : rooms_.orders.first(batch.images)) {
    requests.push_back({.file_untrusted = {files + order.at, order.bytes},
                        .at = order.at,
                        .orientation = kernels::orientation_of(order.orientation),
                        .kind = order.packed != 0 ? ImageKind::kPacked : ImageKind::kJpegFile,
                        .stored = {order.stored_width, order.stored_height},
                        .views = std::span(views_).subspan(first, order.views)});
    first += order.views;
  }
  return requests;
}

Result<void> GpuLane::make(const CudaBatch& batch) {
  MILLRACE_TRY_VOID(take_room(batch));
  Result<void> made = make_there(batch);
  room_.release(half_);
  return made;
}

// A planner whose new tables did not get to the GPU believes that they are there: it goes, and so does what it knows.
Result<void> GpuLane::make_there(const CudaBatch& batch) {
  PlannerOfRecipe& planner = planner_for(batch);
  const BatchPlan& plan = planner.planner->plan(requests_of(batch));
  const Result<void> made = plan.jobs.empty() ? Result<void>() : run(planner, plan, batch);
  if (made) answer(plan);
  if (!made || (plan.jobs.empty() && !plan.new_tables.empty())) planners_.pop_front();
  return made;
}

// Whatever was enqueued before something failed reads the staging and the plan: it is waited for.
Result<void> GpuLane::run(const PlannerOfRecipe& planner, const BatchPlan& plan, const CudaBatch& batch) {
  const WorkspaceLayout layout = workspace_layout(plan, kernels_.shape());
  Division at{};
  at.tensors = at.encoded + aligned(batch.encoded_bytes);
  at.workspace = at.tensors + aligned(plan.tensors_bytes);
  at.end = at.workspace + layout.bytes;
  if (layout.upload_bytes > plans_.size() - kStatusBytes) return too_much("a lane's 16 MiB for plans have");
  if (at.end > piece_.bytes) return too_much("the GPU's memory has");
  Result<void> enqueued = enqueue(planner, plan, layout, at, batch);
  MILLRACE_TRY_VOID(stream_.wait());
  MILLRACE_TRY_VOID(std::move(enqueued));
  return batch.memory == 0 ? Result<void>() : deliver(plan, batch, piece_.at + at.tensors);
}

// Only what is good, for where a tensor was not made something of another batch may lie, and this memory is a client's to
// read. Those that follow each other go together.
Result<void> GpuLane::deliver(const BatchPlan& plan, const CudaBatch& batch, CUdeviceptr tensors) {
  MILLRACE_TRY(const std::shared_ptr<ExportedMemory> memory, memories_.find(batch.memory));
  const Driver& driver = context_.driver();
  struct {
    std::uint64_t to = 0, from = 0, bytes = 0;
  } row;
  const auto copy = [&]() -> Result<void> {
    if (row.bytes == 0) return {};
    return driver.checked(
        driver.cuMemcpyDtoDAsync_v2(memory->at() + row.to, tensors + row.from, row.bytes, stream_.get()),
        "copying tensors on the GPU");
  };
  Result<void> copied;
  for (std::size_t job = 0; copied && job < plan.jobs.size(); ++job) {
    if (statuses()[plan.jobs[job].decoded] != Status::kDone) continue;
    const auto [from, bytes] = plan.places[job];
    const std::uint64_t to = rooms_.views[plan.views[job]].out_at;
    if (!memory->holds(to, bytes)) {
      copied = Error{Code::kInvalid, "a tensor's place is not in the session's memory"};
    } else if (row.from + row.bytes == from && row.to + row.bytes == to) {
      row.bytes += bytes;
    } else {
      copied = copy();
      row = {to, from, bytes};
    }
  }
  if (copied) copied = copy();
  MILLRACE_TRY_VOID(stream_.wait());
  return copied;
}

Result<void> GpuLane::enqueue(const PlannerOfRecipe& planner, const BatchPlan& plan, const WorkspaceLayout& layout,
                              const Division& at, const CudaBatch& batch) {
  const Driver& driver = context_.driver();
  std::byte* const upload = plans_.data() + kStatusBytes;
  write_upload(plan, layout, {upload, layout.upload_bytes});
  const BatchViews views{.encoded = piece_.at + at.encoded,
                         .tables = piece_.tables + planner.tables,
                         .tensors = piece_.at + at.tensors,
                         .workspace = piece_.at + at.workspace,
                         .upload = upload,
                         .statuses = reinterpret_cast<Status*>(plans_.data())};
  const std::byte* const files = room_.staging() + part_.encoded_at;
  MILLRACE_TRY_VOID(
      driver.checked(driver.cuMemcpyHtoDAsync_v2(views.encoded, files, batch.encoded_bytes, stream_.get()),
                     "copying files to the GPU"));
  MILLRACE_TRY_VOID(kernels_.launch(plan, layout, views, stream_.get()));
  if (batch.memory != 0) return {};
  return driver.checked(
      driver.cuMemcpyDtoHAsync_v2(room_.staging() + part_.tensors_at, views.tensors, plan.tensors_bytes, stream_.get()),
      "copying tensors from the GPU");
}

void GpuLane::answer(const BatchPlan& plan) const {
  for (std::size_t i = 0; i < plan.refusals.size(); ++i) {
    const std::string_view why = plan.refusals[i];
    CudaOrder& order = rooms_.orders[i];
    if (!why.empty()) refuse(order, why, is_broken(order, why));
  }
  for (std::size_t job = 0; job < plan.jobs.size(); ++job) {
    if (plan.jobs[job].decoded != job) continue;
    CudaOrder& order = rooms_.orders[plan.requests[job]];
    if (statuses()[job] == Status::kDone)
      order.verdict = 0;
    else
      refuse(order, words_of(statuses()[job]), order.packed != 0);
  }
}

}  // namespace millrace::cuda
