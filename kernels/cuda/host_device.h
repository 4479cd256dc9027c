// What lets one source be a CUDA kernel and a function that tests run without a GPU.
//   MILLRACE_HD      a function for both
//   MILLRACE_KERNEL  a function over a block: for whichever the block is of
#pragma once

#if defined(__CUDACC__)
#define MILLRACE_HD __host__ __device__
#define MILLRACE_KERNEL __device__
#else
#define MILLRACE_HD
#define MILLRACE_KERNEL
#endif
