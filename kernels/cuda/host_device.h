// What lets one source be a CUDA kernel and a function that tests run without a GPU.
//   MILLRACE_HD      a function for both
//   MILLRACE_KERNEL  a function over a block: for whichever the block is of
//   MILLRACE_ROLLED  before a loop that a GPU's compiler shall leave as it is
//   MILLRACE_BY_FOUR before one whose loads it shall begin four rounds early
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define MILLRACE_HD __host__ __device__
#define MILLRACE_KERNEL __device__
#define MILLRACE_ROLLED _Pragma("unroll 1")
#define MILLRACE_BY_FOUR _Pragma("unroll 4")
#else
#define MILLRACE_HD
#define MILLRACE_KERNEL
#define MILLRACE_ROLLED
#define MILLRACE_BY_FOUR
#endif

namespace millrace::kernels::cuda {

// REQUIRES: an address that is a multiple of T's size. One instruction on a GPU, whatever type the memory is of (nvcc
// makes bytes of a memcpy() where it loses sight of the alignment).
template <class T>
MILLRACE_HD inline T load_aligned(const void* at) {
  static_assert(alignof(T) == sizeof(T));
#if defined(__CUDA_ARCH__)
  return *static_cast<const T*>(at);
#else
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
#endif
}
template <class T>
MILLRACE_HD inline void store_aligned(void* at, T value) {
  static_assert(alignof(T) == sizeof(T));
#if defined(__CUDA_ARCH__)
  *static_cast<T*>(at) = value;
#else
  std::memcpy(at, &value, sizeof(T));
#endif
}

MILLRACE_HD inline std::uint32_t swap_bytes(std::uint32_t word) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(word, 0, 0x0123);
#else
  return __builtin_bswap32(word);
#endif
}

MILLRACE_HD inline int count_ones(std::uint64_t word) {
#if defined(__CUDA_ARCH__)
  return __popcll(word);
#else
  return __builtin_popcountll(word);
#endif
}
// REQUIRES: a word that is not 0.
MILLRACE_HD inline int lowest_one(std::uint64_t word) {
#if defined(__CUDA_ARCH__)
  return __ffsll(static_cast<long long>(word)) - 1;
#else
  return __builtin_ctzll(word);
#endif
}
MILLRACE_HD inline int highest_one(std::uint64_t word) {
#if defined(__CUDA_ARCH__)
  return 63 - __clzll(static_cast<long long>(word));
#else
  return 63 - __builtin_clzll(word);
#endif
}

// 32 bits of the 64 of `high` and `low`, from bit `shift` on, which is 0..31.
MILLRACE_HD inline std::uint32_t word_at(std::uint32_t low, std::uint32_t high, unsigned shift) {
#if defined(__CUDA_ARCH__)
  return __funnelshift_r(low, high, shift);
#else
  return static_cast<std::uint32_t>((std::uint64_t{high} << 32 | low) >> shift);
#endif
}

}  // namespace millrace::kernels::cuda
