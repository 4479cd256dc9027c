// Memory of the GPU that another process maps: an allocation a session. A holder of its descriptor can write all of it,
// so nothing else ever lies in it, and what is read there decides nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "daemon/backend/cuda/cuda_wire.h"
#include "daemon/backend/cuda/worker/gpu.h"
#include "proto/base/mutex.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace::cuda {

// Thread-bound(its maker) until it is filled; then Immutable.
class ExportedMemory {
 public:
  // Mapped here, of unknown contents. kExhausted: so much is not free. kUnsupported: this GPU or its driver exports none.
  static Result<std::shared_ptr<ExportedMemory>> create(const GpuContext& context, std::size_t bytes);
  ExportedMemory(const ExportedMemory&) = delete;
  ExportedMemory& operator=(const ExportedMemory&) = delete;
  ~ExportedMemory();

  CUdeviceptr at() const { return at_; }
  std::size_t size() const { return size_; }  // what was asked for, in whole granules
  bool holds(std::uint64_t from, std::uint64_t bytes) const { return from <= size_ && bytes <= size_ - from; }

  // By which other processes map it.
  Result<UniqueFd> descriptor() const;

 private:
  ExportedMemory(const GpuContext& context, std::size_t size) : context_(context), size_(size) {}
  Result<void> prepare();

  const GpuContext& context_;
  const std::size_t size_;
  CUmemGenericAllocationHandle handle_ = 0;
  CUdeviceptr at_ = 0;
  bool has_handle_ = false, is_mapped_ = false;
};

// Those of this process, by the daemon's numbers. Thread-safe.
class ExportedMemories {
 public:
  void add(std::uint64_t number, std::shared_ptr<ExportedMemory> memory) MILLRACE_EXCLUDES(mutex_);
  std::shared_ptr<ExportedMemory> remove(std::uint64_t number) MILLRACE_EXCLUDES(mutex_);
  // kNotFound: it is not there, or not any more. Shared: lanes and the mover use what is given back meanwhile.
  Result<std::shared_ptr<ExportedMemory>> find(std::uint64_t number) const MILLRACE_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<ExportedMemory>> by_number_ MILLRACE_GUARDED_BY(mutex_);
};

// Takes such memory, gives it back, and moves bytes into it. Thread-bound(its thread).
class MemoryMover {
 public:
  // On its thread, whose current context it becomes. `staging`: kCudaMemoryStagingBytes, mapped as long as this is.
  static Result<std::unique_ptr<MemoryMover>> create(const GpuContext& context, ExportedMemories& memories,
                                                     std::byte* staging);

  // What came of it: a descriptor for kTake. kNotFound: no such memory. kExhausted: no room. kInvalid: moves that do not
  // lie in it. kUnavailable: the context is broken.
  Result<UniqueFd> carry_out(const CudaMemoryOrder& order);

 private:
  MemoryMover(const GpuContext& context, ExportedMemories& memories, std::byte* staging)
      : context_(context),
        memories_(memories),
        staging_(staging),
        pinned_(context.driver()),
        bounce_(context.driver()),
        stream_(context.driver()) {}
  Result<void> prepare();
  Result<UniqueFd> take(const CudaMemoryOrder& order);
  Result<void> move_all(const CudaMemoryOrder& order);
  Result<void> move(const ExportedMemory& memory, const CudaMove& move);
  Result<void> copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes);
  Result<void> copy_within(const ExportedMemory& memory, const CudaMove& move);
  Result<void> clear(CUdeviceptr at, std::size_t bytes);

  const GpuContext& context_;
  ExportedMemories& memories_;
  std::byte* const staging_;
  PinnedMemory pinned_;  // the staging
  GpuMemory bounce_;     // for copies onto bytes that overlap
  GpuStream stream_;
};

}  // namespace millrace::cuda
