#include "daemon/backend/cuda/worker/lane_room.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

namespace millrace::cuda {
namespace {

constexpr std::size_t kPlansBytes = kCudaPlans.count;
constexpr std::chrono::seconds kTriedAgain{1}, kTakenAgain{10};

Error none_left() {
  return Error{Code::kUnsupported, "the GPU has no memory left: others have it"};
}

}  // namespace

Result<std::unique_ptr<LaneRoom>> LaneRoom::create(const GpuContext& context, std::byte* staging,
                                                   const CudaStaging& layout, std::size_t device_bytes,
                                                   std::size_t tables_bytes) {
  std::unique_ptr<LaneRoom> room(new LaneRoom(context, staging, layout, device_bytes, tables_bytes));
  MILLRACE_TRY_VOID(room->prepare());
  return room;
}

LaneRoom::LaneRoom(const GpuContext& context, std::byte* staging, const CudaStaging& layout, std::size_t device_bytes,
                   std::size_t tables_bytes)
    : staging_(staging),
      layout_(layout),
      device_bytes_(device_bytes),
      tables_bytes_(tables_bytes),
      pinned_(context.driver()),
      plans_(context.driver()),
      memory_(context.driver()) {}

// The pinned memory of its own stays mapped: it ends with the process, as the lane does.
Result<void> LaneRoom::prepare() {
  MILLRACE_TRY_VOID(pinned_.pin(staging_, layout_.size()));
  void* const plans = mmap(nullptr, kPlansBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (plans == MAP_FAILED) return Error{Code::kExhausted, errno_error("taking memory for plans", errno).message};
  return plans_.pin(static_cast<std::byte*>(plans), kPlansBytes);
}

std::span<std::byte> LaneRoom::plans(std::uint32_t half, bool whole) const {
  const std::span<std::byte> all(plans_.at(), kPlansBytes);
  constexpr std::size_t kHalf = kPlansBytes / kCudaHalves;
  return whole ? all : all.subspan(half * kHalf, kHalf);
}

Result<LaneRoom::Piece> LaneRoom::take(std::uint32_t half, bool whole) {
  MutexLock lock(mutex_);
  MILLRACE_TRY_VOID(take_memory());
  uses_[half] = Use::kHaving;
  const std::size_t tables = kCudaHalves * tables_bytes_, all = (memory_.size() - tables) / kAligned * kAligned,
                    each = all / kCudaHalves / kAligned * kAligned;
  return Piece{.tables = memory_.at() + half * tables_bytes_,
               .at = memory_.at() + tables + (whole ? 0 : half * each),
               .bytes = whole ? all : each,
               .block = block_};
}

void LaneRoom::release(std::uint32_t half) {
  MutexLock lock(mutex_);
  if (uses_[half] == Use::kHaving) uses_[half] = Use::kWanting;
}

void LaneRoom::rest(std::uint32_t half) {
  MutexLock lock(mutex_);
  uses_[half] = Use::kResting;
  const bool all_rest = std::all_of(uses_.begin(), uses_.end(), [](Use use) { return use == Use::kResting; });
  if (all_rest) memory_.release();
}

// All of it, or what there is of it where others have the rest; then all of it is tried again after a while, when the
// other half has none of it.
Result<void> LaneRoom::take_memory() {
  const auto since = std::chrono::steady_clock::now() - taken_;
  const bool has_all = memory_.size() == device_bytes_, has_some = memory_.size() != 0;
  const bool is_shared = std::any_of(uses_.begin(), uses_.end(), [](Use use) { return use == Use::kHaving; });
  if (has_all || (has_some && (since < kTakenAgain || is_shared))) return {};
  if (!has_some && since < kTriedAgain) return none_left();
  ++block_;
  std::size_t bytes = device_bytes_;
  Result<void> taken = memory_.allocate(bytes);
  while (!taken && taken.error().code == Code::kExhausted && bytes / 2 > 2 * kCudaHalves * tables_bytes_)
    taken = memory_.allocate(bytes /= 2);
  taken_ = std::chrono::steady_clock::now();
  if (!taken && taken.error().code == Code::kExhausted) return none_left();
  return taken;
}

}  // namespace millrace::cuda
