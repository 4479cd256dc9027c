// A GPU as the process that owns it has it: its primary context, and memory, streams and events that end with their
// owner. Every call but GpuContext::open() wants use() to have been called on the thread.
//
// Thread-bound(its owner), but for GpuContext, which is Thread-safe once open.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "daemon/backend/cuda/cuda_wire.h"
#include "proto/base/result.h"
#include "proto/cuda/driver.h"

namespace millrace::cuda {

// Those that the driver gives to this process and that answer. kUnsupported: there is none.
Result<std::vector<CudaReady>> list_gpus(const Driver& driver);
// The one that has the UUID. kUnavailable: there is none now.
Result<CudaReady> describe_gpu(const Driver& driver, const std::uint8_t (&uuid)[16]);

// Never released: it ends with the process.
class GpuContext {
 public:
  // kUnavailable: there is no such GPU now.
  static Result<GpuContext> open(const Driver& driver, const std::uint8_t (&uuid)[16]);

  const Driver& driver() const { return *driver_; }
  CUdevice device() const { return device_; }
  // Makes it the thread's current one.
  Result<void> use() const { return driver_->checked(driver_->cuCtxSetCurrent(context_), "cuCtxSetCurrent"); }

 private:
  GpuContext(const Driver& driver, CUdevice device) : driver_(&driver), device_(device) {}

  const Driver* driver_;
  CUdevice device_;
  CUcontext context_ = nullptr;
};

// Memory of the GPU. Unknown contents.
class GpuMemory {
 public:
  explicit GpuMemory(const Driver& driver) : driver_(driver) {}
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  ~GpuMemory() { release(); }

  // kExhausted: so much is not free. What was there is gone.
  Result<void> allocate(std::size_t bytes);
  void release();  // waits for the GPU

  CUdeviceptr at() const { return at_; }
  std::size_t size() const { return size_; }

 private:
  const Driver& driver_;
  CUdeviceptr at_ = 0;
  std::size_t size_ = 0;
};

// Memory of the host that the GPU copies from and to without the processor: somebody else's, for as long as this is.
class PinnedMemory {
 public:
  explicit PinnedMemory(const Driver& driver) : driver_(driver) {}
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory() {
    if (at_ != nullptr) static_cast<void>(driver_.cuMemHostUnregister(at_));
  }

  // REQUIRES: whole pages, and nothing pinned yet.
  Result<void> pin(std::byte* at, std::size_t bytes);
  std::byte* at() const { return at_; }

 private:
  const Driver& driver_;
  std::byte* at_ = nullptr;
};

// A stream of the least priority, and an event at its end that is waited for without keeping a core busy.
class GpuStream {
 public:
  explicit GpuStream(const Driver& driver) : driver_(driver) {}
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;
  ~GpuStream();

  Result<void> create();
  CUstream get() const { return stream_; }
  // Until all that it was given is done.
  Result<void> wait();

 private:
  const Driver& driver_;
  CUstream stream_ = nullptr;
  CUevent end_ = nullptr;
};

}  // namespace millrace::cuda
