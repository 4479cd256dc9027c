// What lets one source be a CUDA kernel and a function that tests run without a GPU.
//   MILLRACE_HD      a function for both
//   MILLRACE_KERNEL  a function over a block: for whichever the block is of
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define MILLRACE_HD __host__ __device__
#define MILLRACE_KERNEL __device__
#else
#define MILLRACE_HD
#define MILLRACE_KERNEL
#endif

namespace millrace::kernels::cuda {

// REQUIRES: an address that is a multiple of T's size. One instruction on a GPU, whatever type the memory is of.
template <class T>
MILLRACE_HD inline T load_aligned(const void* at) {
  T value;
  memcpy(&value, __builtin_assume_aligned(at, sizeof(T)), sizeof(T));
  return value;
}
template <class T>
MILLRACE_HD inline void store_aligned(void* at, T value) {
  memcpy(__builtin_assume_aligned(at, sizeof(T)), &value, sizeof(T));
}

MILLRACE_HD inline std::uint32_t swap_bytes(std::uint32_t word) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(word, 0, 0x0123);
#else
  return __builtin_bswap32(word);
#endif
}

}  // namespace millrace::kernels::cuda
