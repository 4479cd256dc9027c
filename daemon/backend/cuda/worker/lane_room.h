// What the halves of a lane share: the staging, pinned memory for plans, and a block of the GPU's memory. Each has its
// half of them, or one of them has all, while the daemon leaves the other one alone.
//
//   │ tables of half 0's planners, of half 1's │ room of half 0        │ room of half 1        │    the block
//                                              │ room of the half that has all of it           │
//
// The block is taken at the first batch, and given back when neither half has had one for a while. Thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "daemon/backend/cuda/cuda_wire.h"
#include "daemon/backend/cuda/worker/gpu.h"
#include "proto/base/mutex.h"
#include "proto/base/result.h"

namespace millrace::cuda {

class LaneRoom {
 public:
  // A batch's part of the block.
  struct Piece {
    CUdeviceptr tables = 0;  // of the half's planners
    CUdeviceptr at = 0;      // aligned to kAligned
    std::size_t bytes = 0;
    std::uint64_t block = 0;  // which one it is of: another one knows no tables
  };
  static constexpr std::size_t kAligned = 256;

  // `staging` is mapped as long as this is. All of it is pinned; that and the errors are the driver's. `tables_bytes`: of a
  // half's planners.
  static Result<std::unique_ptr<LaneRoom>> create(const GpuContext& context, std::byte* staging,
                                                  const CudaStaging& layout, std::size_t device_bytes,
                                                  std::size_t tables_bytes);

  const CudaStaging& layout() const { return layout_; }
  std::byte* staging() const { return staging_; }
  // Pinned, for what goes to and from the GPU of a plan.
  std::span<std::byte> plans(std::uint32_t half, bool whole) const;

  // The half has it until release(). kUnsupported: the GPU has no memory left. REQUIRES: for the whole, the other half has
  // nothing, and its stream is through.
  Result<Piece> take(std::uint32_t half, bool whole) MILLRACE_EXCLUDES(mutex_);
  void release(std::uint32_t half) MILLRACE_EXCLUDES(mutex_);

  // The half wants no memory until it takes some again.
  void rest(std::uint32_t half) MILLRACE_EXCLUDES(mutex_);

 private:
  enum class Use { kResting, kWanting, kHaving };

  LaneRoom(const GpuContext& context, std::byte* staging, const CudaStaging& layout, std::size_t device_bytes,
           std::size_t tables_bytes);
  Result<void> prepare();
  Result<void> take_memory() MILLRACE_REQUIRES(mutex_);

  std::byte* const staging_;
  const CudaStaging layout_;
  const std::size_t device_bytes_, tables_bytes_;
  PinnedMemory pinned_, plans_;  // the staging; statuses, and what is uploaded of a plan
  Mutex mutex_;
  GpuMemory memory_ MILLRACE_GUARDED_BY(mutex_);
  std::uint64_t block_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::array<Use, kCudaHalves> uses_ MILLRACE_GUARDED_BY(mutex_){};
  std::chrono::steady_clock::time_point taken_ MILLRACE_GUARDED_BY(mutex_){};  // the memory, or the attempt
};

}  // namespace millrace::cuda
