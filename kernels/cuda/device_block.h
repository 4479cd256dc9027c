// A thread block of a GPU, as block.h describes it. One object a thread; for nvcc only.
//
//   __global__ void __launch_bounds__(kTokeniseThreads, kTokeniseBlocks) tokenise_kernel(TokeniseArgs args) {
//     __shared__ DeviceBlock::Scratch scratch;
//     DeviceBlock block(scratch);
//     tokenise(block, args);
//   }
//
// shared<T>() is the launch's dynamic shared memory: sizeof(T) bytes have to be asked for.
#pragma once

#include "kernels/cuda/block.h"

namespace millrace::kernels::cuda {

class DeviceBlock {
 public:
  // Of the collectives.
  struct Scratch {
    int warps[kWarp];
  };

  template <PlainValue T>
  struct PerThread {
    T value;
    __device__ T& operator[](int) { return value; }
    __device__ const T& operator[](int) const { return value; }
  };

  explicit __device__ DeviceBlock(Scratch& scratch) : scratch_(scratch) {}

  __device__ int index() const { return static_cast<int>(blockIdx.x); }
  __device__ int threads() const { return static_cast<int>(blockDim.x); }

  template <class Function>
  __device__ void each(Function function) {
    function(static_cast<int>(threadIdx.x));
    __syncthreads();
  }

  template <PlainValue T>
  __device__ T& shared() {
    extern __shared__ uint4 millrace_dynamic_shared[];
    static_assert(alignof(T) <= alignof(uint4));
    return *reinterpret_cast<T*>(millrace_dynamic_shared);
  }

  template <PlainValue T>
  __device__ PerThread<T> per_thread() {
    return PerThread<T>{};  // what nobody reads costs nothing
  }

  __device__ int exclusive_sum(PerThread<int>& values) {
    const int inclusive = inclusive_sum_of_warp(values.value);
    if (lane() == kWarp - 1) scratch_.warps[warp()] = inclusive;
    __syncthreads();
    if (warp() == 0) {
      const int sum = inclusive_sum_of_warp(lane() < warps() ? scratch_.warps[lane()] : 0);
      if (lane() < warps()) scratch_.warps[lane()] = sum;
    }
    __syncthreads();
    const int before = warp() == 0 ? 0 : scratch_.warps[warp() - 1];
    const int total = scratch_.warps[warps() - 1];
    values.value = before + inclusive - values.value;
    __syncthreads();
    return total;
  }

  __device__ int min_of(PerThread<int>& values) {
    const int least = __reduce_min_sync(kAllLanes, values.value);
    if (lane() == 0) scratch_.warps[warp()] = least;
    __syncthreads();
    const int all = __reduce_min_sync(kAllLanes, scratch_.warps[lane() < warps() ? lane() : 0]);
    __syncthreads();
    return all;
  }

  __device__ bool any(PerThread<bool>& values) { return __syncthreads_or(values.value) != 0; }

  template <class T>
  static __device__ T atomic_add(T* at, T value) {
    return atomicAdd(at, value);
  }
  // Relaxed, as the PTX manual says of volatile.
  template <class T>
  static __device__ T load(const T* at) {
    static_assert(sizeof(T) == sizeof(std::uint32_t));
    return *static_cast<const volatile T*>(at);
  }
  template <class T>
  static __device__ void store(T* at, T value) {
    static_assert(sizeof(T) == sizeof(std::uint32_t));
    *static_cast<volatile T*>(at) = value;
  }

 private:
  static constexpr unsigned kAllLanes = 0xffffffff;

  static __device__ int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
  static __device__ int warp() { return static_cast<int>(threadIdx.x) / kWarp; }
  static __device__ int warps() { return static_cast<int>(blockDim.x) / kWarp; }

  static __device__ int inclusive_sum_of_warp(int value) {
    for (int distance = 1; distance < kWarp; distance *= 2) {
      const int before = __shfl_up_sync(kAllLanes, value, static_cast<unsigned>(distance));
      if (lane() >= distance) value += before;
    }
    return value;
  }

  Scratch& scratch_;
};

}  // namespace millrace::kernels::cuda
