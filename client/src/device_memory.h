// A session's memory on a GPU, as this process has mapped it, and slots of it that are given back when the GPU's streams
// have done with them.
//
// The daemon made it and passed a descriptor. It is mapped in the device's primary context, which is the one of CUDA's
// run time, and stays so until the last view is gone. Every call leaves the calling thread's current context as it was.
//
// Thread-safe. Nothing of it may be used in a forked child, where CUDA does not work; what a child drops stays as it is.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "proto/base/bytes.h"
#include "proto/base/mutex.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"
#include "proto/cuda/driver.h"
#include "proto/cuda/uuid.h"

namespace millrace {
inline namespace client {

// A GPU that this process sees. Thread-safe.
class VisibleGpu {
 public:
  // By its UUID. kUnsupported: this process has no driver, does not see that GPU, or cannot map its memory; says
  // what to do. kPrecondition: the process was forked from one that used CUDA.
  static Result<VisibleGpu> find(const cuda::Uuid& uuid);

  const cuda::Driver& driver() const { return *driver_; }
  cuda::CUdevice device() const { return device_; }
  int ordinal() const { return ordinal_; }  // as CUDA counts in this process
  const cuda::Uuid& uuid() const { return uuid_; }

 private:
  VisibleGpu(const cuda::Driver& driver, const cuda::Uuid& uuid, cuda::CUdevice device, int ordinal)
      : driver_(&driver), uuid_(uuid), device_(device), ordinal_(ordinal) {}

  const cuda::Driver* driver_;
  cuda::Uuid uuid_;
  cuda::CUdevice device_;
  int ordinal_;
};

class DeviceMemory {
 public:
  // Maps the first `size` bytes of what `descriptor` names. kExhausted: the GPU has no memory left for this process.
  // kPrecondition: CUDA fails; has its name for why.
  static Result<std::unique_ptr<DeviceMemory>> map(const VisibleGpu& gpu, const UniqueFd& descriptor, Bytes size);
  // Waits for what release_after() was told of. After a failure() it stays mapped, for streams may use it.
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  int ordinal() const { return gpu_.ordinal(); }
  std::uint64_t address() const { return at_; }  // CUdeviceptr
  Bytes size() const { return size_; }

  // Has look() call `release` once the streams have done what they have to do now. Waits for nothing. If CUDA cannot tell
  // when that is, `release` is dropped, and failure() says why.
  void release_after(std::span<void* const> streams, std::function<void()> release) MILLRACE_EXCLUDES(mutex_);

  // Calls what is due, in this thread. Returns whether something is not.
  bool look() MILLRACE_EXCLUDES(mutex_);

  // Why slots may stay in use for ever; the session is of no use then.
  std::optional<Error> failure() const MILLRACE_EXCLUDES(mutex_);

  // Copies to the host's memory what lies at `address`, when the streams have done what they have to do now. kPrecondition:
  // CUDA fails. REQUIRES: the bytes lie in this memory.
  Result<void> copy(std::uint64_t address, std::span<std::byte> to, std::span<void* const> after) const;

 private:
  using Events = std::vector<cuda::CUevent>;
  struct Release {
    Events events;
    std::function<void()> call;
  };

  DeviceMemory(const VisibleGpu& gpu, Bytes size) : gpu_(gpu), size_(size) {}
  Result<void> prepare(const UniqueFd& descriptor);
  void let_peers_in(std::size_t whole) const;
  Result<Events> record(std::span<void* const> streams) const;
  Result<bool> passed(Events& events) const;  // destroys those that have
  void destroy(Events& events) const;
  bool forked() const { return ::getpid() != pid_; }

  const pid_t pid_ = ::getpid();
  const VisibleGpu gpu_;
  const Bytes size_;
  cuda::CUcontext context_ = nullptr;  // retained
  cuda::CUdeviceptr at_ = 0;
  std::size_t reserved_ = 0;  // bytes of addresses
  bool mapped_ = false;
  mutable Mutex mutex_;
  std::vector<Release> waiting_ MILLRACE_GUARDED_BY(mutex_);
  std::optional<Error> failure_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace client
}  // namespace millrace
