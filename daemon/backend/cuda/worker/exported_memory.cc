#include "daemon/backend/cuda/worker/exported_memory.h"

#include <algorithm>
#include <string>

#include "proto/cuda/shared_memory.h"

namespace millrace::cuda {
namespace {

constexpr std::size_t kBounce = 4 << 20;

}  // namespace

Result<std::shared_ptr<ExportedMemory>> ExportedMemory::create(const GpuContext& context, std::size_t bytes) {
  MILLRACE_TRY_VOID(can_share_memory(context.driver(), context.device()));
  MILLRACE_TRY(const std::size_t size, shared_memory_size(context.driver(), context.device(), bytes));
  std::shared_ptr<ExportedMemory> memory(new ExportedMemory(context, size));
  MILLRACE_TRY_VOID(memory->prepare());
  return memory;
}

Result<void> ExportedMemory::prepare() {
  const Driver& driver = context_.driver();
  const CUmemAllocationProp properties = shared_memory_of(context_.device());
  const CUmemAccessDesc access{.location = properties.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  MILLRACE_TRY_VOID(driver.checked(driver.cuMemCreate(&handle_, size_, &properties, 0), "cuMemCreate"));
  has_handle_ = true;
  MILLRACE_TRY_VOID(driver.checked(driver.cuMemAddressReserve(&at_, size_, 0, 0, 0), "cuMemAddressReserve"));
  MILLRACE_TRY_VOID(driver.checked(driver.cuMemMap(at_, size_, 0, handle_, 0), "cuMemMap"));
  is_mapped_ = true;
  return driver.checked(driver.cuMemSetAccess(at_, size_, &access, 1), "cuMemSetAccess");
}

ExportedMemory::~ExportedMemory() {
  const Driver& driver = context_.driver();
  if (is_mapped_) static_cast<void>(driver.cuMemUnmap(at_, size_));
  if (at_ != 0) static_cast<void>(driver.cuMemAddressFree(at_, size_));
  if (has_handle_) static_cast<void>(driver.cuMemRelease(handle_));
}

Result<UniqueFd> ExportedMemory::descriptor() const {
  const Driver& driver = context_.driver();
  int descriptor = -1;
  MILLRACE_TRY_VOID(driver.checked(
      driver.cuMemExportToShareableHandle(&descriptor, handle_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
      "cuMemExportToShareableHandle"));
  return UniqueFd(descriptor);
}

void ExportedMemories::add(std::uint64_t number, std::shared_ptr<ExportedMemory> memory) {
  MutexLock lock(mutex_);
  by_number_[number] = std::move(memory);
}

std::shared_ptr<ExportedMemory> ExportedMemories::remove(std::uint64_t number) {
  MutexLock lock(mutex_);
  auto entry = by_number_.extract(number);
  return entry ? std::move(entry.mapped()) : nullptr;
}

Result<std::shared_ptr<ExportedMemory>> ExportedMemories::find(std::uint64_t number) const {
  MutexLock lock(mutex_);
  const auto found = by_number_.find(number);
  if (found == by_number_.end())
    return Error{Code::kNotFound, "the session's memory on the GPU went with the process that had it"};
  return found->second;
}

Result<std::unique_ptr<MemoryMover>> MemoryMover::create(const GpuContext& context, ExportedMemories& memories,
                                                         std::byte* staging) {
  MILLRACE_TRY_VOID(context.use());
  std::unique_ptr<MemoryMover> mover(new MemoryMover(context, memories, staging));
  MILLRACE_TRY_VOID(mover->prepare());
  return mover;
}

Result<void> MemoryMover::prepare() {
  MILLRACE_TRY_VOID(pinned_.pin(staging_, kCudaMemoryStagingBytes.count));
  return stream_.create();
}

Result<UniqueFd> MemoryMover::carry_out(const CudaMemoryOrder& order) {
  if (order.work == CudaMemoryWork::kTake) return take(order);
  if (order.work == CudaMemoryWork::kGive)
    memories_.remove(order.memory);
  else
    MILLRACE_TRY_VOID(move_all(order));
  return UniqueFd();
}

// Zeroes before anybody else can see it: what was there may be another process's.
Result<UniqueFd> MemoryMover::take(const CudaMemoryOrder& order) {
  MILLRACE_TRY(std::shared_ptr<ExportedMemory> memory, ExportedMemory::create(context_, order.bytes));
  MILLRACE_TRY_VOID(clear(memory->at(), memory->size()));
  MILLRACE_TRY_VOID(stream_.wait());
  MILLRACE_TRY(UniqueFd descriptor, memory->descriptor());
  memories_.add(order.memory, std::move(memory));
  return descriptor;
}

// Whatever was enqueued before something failed reads the staging: it is waited for.
Result<void> MemoryMover::move_all(const CudaMemoryOrder& order) {
  if (order.moves > kMostCudaMoves) return Error{Code::kInvalid, "more moves than the staging has room for"};
  MILLRACE_TRY(const std::shared_ptr<ExportedMemory> memory, memories_.find(order.memory));
  Result<void> moved;
  for (std::uint32_t i = 0; moved && i < order.moves; ++i)
    moved = move(*memory, reinterpret_cast<const CudaMove*>(staging_)[i]);
  MILLRACE_TRY_VOID(stream_.wait());
  return moved;
}

Result<void> MemoryMover::move(const ExportedMemory& memory, const CudaMove& move) {
  const bool from_staging = move.where == CudaMoveFrom::kStaging, from_memory = move.where == CudaMoveFrom::kMemory;
  if (!memory.holds(move.to, move.bytes) || (from_memory && !memory.holds(move.from, move.bytes)) ||
      (from_staging && (move.from > kCudaMoving.count || move.bytes > kCudaMoving.count - move.from)))
    return Error{Code::kInvalid, "bytes that are to be moved do not lie in the session's memory"};
  if (move.bytes == 0) return {};
  if (from_memory) return copy_within(memory, move);
  if (!from_staging) return clear(memory.at() + move.to, move.bytes);
  const Driver& driver = context_.driver();
  return driver.checked(driver.cuMemcpyHtoDAsync_v2(memory.at() + move.to, staging_ + kCudaMovedAt + move.from,
                                                    move.bytes, stream_.get()),
                        "copying tensors to the GPU");
}

// A copy between bytes that overlap is undefined: those go by way of other memory, from the end that is overwritten last.
Result<void> MemoryMover::copy_within(const ExportedMemory& memory, const CudaMove& move) {
  const std::uint64_t apart = move.to > move.from ? move.to - move.from : move.from - move.to;
  if (apart >= move.bytes) return copy(memory.at() + move.to, memory.at() + move.from, move.bytes);
  if (bounce_.size() == 0) MILLRACE_TRY_VOID(bounce_.allocate(kBounce));
  for (std::uint64_t done = 0; done < move.bytes;) {
    const std::uint64_t piece = std::min<std::uint64_t>(kBounce, move.bytes - done);
    const std::uint64_t at = move.to > move.from ? move.bytes - done - piece : done;
    MILLRACE_TRY_VOID(copy(bounce_.at(), memory.at() + move.from + at, piece));
    MILLRACE_TRY_VOID(copy(memory.at() + move.to + at, bounce_.at(), piece));
    done += piece;
  }
  return {};
}

Result<void> MemoryMover::copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  const Driver& driver = context_.driver();
  return driver.checked(driver.cuMemcpyDtoDAsync_v2(to, from, bytes, stream_.get()), "copying on the GPU");
}

Result<void> MemoryMover::clear(CUdeviceptr at, std::size_t bytes) {
  const Driver& driver = context_.driver();
  return driver.checked(driver.cuMemsetD8Async(at, 0, bytes, stream_.get()), "clearing the GPU's memory");
}

}  // namespace millrace::cuda
