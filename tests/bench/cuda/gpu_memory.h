// Memory, streams and events that end with their owner. What fails throws std::runtime_error: a benchmark has nothing
// better to do. Each Thread-bound(its owner).
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "proto/base/result.h"
#include "proto/cuda/driver_api.h"

namespace millrace::kernels::cuda::bench {

inline void require(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
}
#define MILLRACE_REQUIRE_CUDA(call) ::millrace::kernels::cuda::bench::require((call), #call)

// Of our launches, by the driver's API.
inline void require(const Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().message);
}

enum class Where { kGpu, kPinned };

template <Where where>
class Memory {
 public:
  Memory() = default;
  explicit Memory(std::size_t bytes) { reserve(bytes); }
  Memory(Memory&& other) noexcept { swap(other); }
  Memory& operator=(Memory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Memory() { release(); }

  // At least so many; what was there is lost. Waits for the device where it has to grow.
  std::byte* reserve(std::size_t bytes) {
    if (bytes <= size_) return data_;
    release();
    const std::size_t more = bytes + bytes / 4;
    void* made = nullptr;
    if constexpr (where == Where::kGpu) {
      MILLRACE_REQUIRE_CUDA(cudaMalloc(&made, more));
    } else {
      MILLRACE_REQUIRE_CUDA(cudaMallocHost(&made, more));
    }
    data_ = static_cast<std::byte*>(made);
    size_ = more;
    return data_;
  }
  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  // As the driver's API has it.
  millrace::cuda::CUdeviceptr address() const requires(where == Where::kGpu) {
    return reinterpret_cast<millrace::cuda::CUdeviceptr>(data_);
  }

 private:
  void swap(Memory& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  void release() {
    if (data_ != nullptr) static_cast<void>(where == Where::kGpu ? cudaFree(data_) : cudaFreeHost(data_));
    data_ = nullptr;
    size_ = 0;
  }

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};
using GpuMemory = Memory<Where::kGpu>;
using PinnedMemory = Memory<Where::kPinned>;

class Stream {
 public:
  enum class Priority { kHigh, kLow };
  explicit Stream(Priority priority = Priority::kHigh) {
    int low = 0, high = 0;
    MILLRACE_REQUIRE_CUDA(cudaDeviceGetStreamPriorityRange(&low, &high));
    MILLRACE_REQUIRE_CUDA(
        cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority == Priority::kLow ? low : high));
  }
  ~Stream() { static_cast<void>(cudaStreamDestroy(stream_)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }
  // The same stream as the driver's API has it.
  millrace::cuda::CUstream driver_stream() const { return reinterpret_cast<millrace::cuda::CUstream>(stream_); }
  void wait() const { MILLRACE_REQUIRE_CUDA(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

// Waits without keeping a core busy.
class Event {
 public:
  Event() { MILLRACE_REQUIRE_CUDA(cudaEventCreateWithFlags(&event_, cudaEventBlockingSync)); }
  ~Event() { static_cast<void>(cudaEventDestroy(event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(const Stream& stream) { MILLRACE_REQUIRE_CUDA(cudaEventRecord(event_, stream.get())); }
  void wait() { MILLRACE_REQUIRE_CUDA(cudaEventSynchronize(event_)); }
  double seconds_since(const Event& before) const {
    float milliseconds = 0;
    MILLRACE_REQUIRE_CUDA(cudaEventElapsedTime(&milliseconds, before.event_, event_));
    return milliseconds * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace millrace::kernels::cuda::bench
