#include "daemon/backend/cuda/worker/gpu_lane.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
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
constexpr std::uint32_t kTableSlots = 2048;  // all that a batch of the most images may bring is half of it
constexpr std::size_t kTablesBytes = kTableSlots * sizeof(kernels::cuda::DecodeTable);
constexpr std::size_t kStatusBytes = 4096;
constexpr std::size_t kPlansBytes = kCudaPlans.count;
constexpr std::size_t kAligned = 256;
constexpr std::uint32_t kMostScanBytes = 8 << 20;  // one thread block walks a scan, and the batch waits for it
constexpr std::chrono::seconds kTriedAgain{1}, kTakenAgain{10};
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

Error too_much() {
  return Error{Code::kExhausted, "more at once than the GPU's memory has room for"};
}

Error none_left() {
  return Error{Code::kUnsupported, "the GPU has no memory left: others have it"};
}

}  // namespace

Result<std::unique_ptr<GpuLane>> GpuLane::create(const GpuContext& context, const Kernels& kernels,
                                                 const ExportedMemories& memories, std::byte* staging,
                                                 const CudaStaging& layout, std::size_t device_bytes) {
  MILLRACE_TRY_VOID(context.use());
  std::unique_ptr<GpuLane> lane(new GpuLane(context, kernels, memories, staging, layout, device_bytes));
  MILLRACE_TRY_VOID(lane->prepare());
  return lane;
}

GpuLane::GpuLane(const GpuContext& context, const Kernels& kernels, const ExportedMemories& memories,
                 std::byte* staging, const CudaStaging& layout, std::size_t device_bytes)
    : context_(context),
      kernels_(kernels),
      memories_(memories),
      staging_(staging),
      rooms_(rooms_in(staging)),
      layout_(layout),
      device_bytes_(device_bytes),
      memory_(context.driver()),
      pinned_(context.driver()),
      plans_(context.driver()),
      stream_(context.driver()) {}

// The pinned memory of its own stays mapped: it ends with the process, as the lane does.
GpuLane::~GpuLane() = default;

Result<void> GpuLane::prepare() {
  MILLRACE_TRY_VOID(pinned_.pin(staging_, layout_.size()));
  void* const plans = mmap(nullptr, kPlansBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (plans == MAP_FAILED) return Error{Code::kExhausted, errno_error("taking memory for plans", errno).message};
  MILLRACE_TRY_VOID(plans_.pin(static_cast<std::byte*>(plans), kPlansBytes));
  return stream_.create();
}

void GpuLane::rest() {
  planners_.clear();  // their tables go with the memory
  memory_.release();
}

// All of it, or what there is of it where others have the rest; then all of it is tried again after a while.
Result<void> GpuLane::take_memory() {
  const auto since = std::chrono::steady_clock::now() - taken_;
  const bool has_all = memory_.size() == device_bytes_;
  if (has_all || (memory_.size() != 0 && since < kTakenAgain)) return {};
  if (memory_.size() == 0 && since < kTriedAgain) return none_left();
  rest();
  std::size_t bytes = device_bytes_;
  Result<void> taken = memory_.allocate(bytes);
  while (!taken && taken.error().code == Code::kExhausted && bytes / 2 > 2 * kPlanners * kTablesBytes)
    taken = memory_.allocate(bytes /= 2);
  taken_ = std::chrono::steady_clock::now();
  if (!taken && taken.error().code == Code::kExhausted) return none_left();
  return taken;
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
  const auto* const files = reinterpret_cast<const std::uint8_t*>(staging_ + CudaStaging::encoded_at());
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

// A planner whose new tables did not get to the GPU believes that they are there: it goes, and so does what it knows.
Result<void> GpuLane::make(const CudaBatch& batch) {
  MILLRACE_TRY_VOID(take_memory());
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
  at.encoded = aligned(kPlanners * kTablesBytes);
  at.tensors = at.encoded + aligned(batch.encoded_bytes);
  at.workspace = at.tensors + aligned(plan.tensors_bytes);
  at.end = at.workspace + layout.bytes;
  if (layout.upload_bytes > kPlansBytes - kStatusBytes || at.end > memory_.size()) return too_much();
  Result<void> enqueued = enqueue(planner, plan, layout, at, batch);
  MILLRACE_TRY_VOID(stream_.wait());
  MILLRACE_TRY_VOID(std::move(enqueued));
  return batch.memory == 0 ? Result<void>() : deliver(plan, batch, memory_.at() + at.tensors);
}

// Only what is good, for where a tensor was not made something of another batch may lie, and this memory is a client's to
// read. Those that follow each other go together.
Result<void> GpuLane::deliver(const BatchPlan& plan, const CudaBatch& batch, CUdeviceptr tensors) {
  MILLRACE_TRY(const std::shared_ptr<ExportedMemory> memory, memories_.find(batch.memory));
  const Driver& driver = context_.driver();
  const auto* const statuses = reinterpret_cast<const Status*>(plans_.at());
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
    if (statuses[plan.jobs[job].decoded] != Status::kDone) continue;
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
  std::byte* const upload = plans_.at() + kStatusBytes;
  write_upload(plan, layout, {upload, layout.upload_bytes});
  const BatchViews views{.encoded = memory_.at() + at.encoded,
                         .tables = memory_.at() + planner.tables,
                         .tensors = memory_.at() + at.tensors,
                         .workspace = memory_.at() + at.workspace,
                         .upload = upload,
                         .statuses = reinterpret_cast<Status*>(plans_.at())};
  const std::byte* const files = staging_ + CudaStaging::encoded_at();
  MILLRACE_TRY_VOID(
      driver.checked(driver.cuMemcpyHtoDAsync_v2(views.encoded, files, batch.encoded_bytes, stream_.get()),
                     "copying files to the GPU"));
  MILLRACE_TRY_VOID(kernels_.launch(plan, layout, views, stream_.get()));
  if (batch.memory != 0) return {};
  return driver.checked(
      driver.cuMemcpyDtoHAsync_v2(staging_ + layout_.tensors_at(), views.tensors, plan.tensors_bytes, stream_.get()),
      "copying tensors from the GPU");
}

void GpuLane::answer(const BatchPlan& plan) const {
  for (std::size_t i = 0; i < plan.refusals.size(); ++i) {
    const std::string_view why = plan.refusals[i];
    CudaOrder& order = rooms_.orders[i];
    if (!why.empty()) refuse(order, why, is_broken(order, why));
  }
  const auto* const statuses = reinterpret_cast<const Status*>(plans_.at());
  for (std::size_t job = 0; job < plan.jobs.size(); ++job) {
    if (plan.jobs[job].decoded != job) continue;
    CudaOrder& order = rooms_.orders[plan.requests[job]];
    if (statuses[job] == Status::kDone)
      order.verdict = 0;
    else
      refuse(order, words_of(statuses[job]), order.packed != 0);
  }
}

}  // namespace millrace::cuda
