// What lets one source be a CUDA kernel and a function that tests run without a GPU.
#pragma once

#if defined(__CUDACC__)
#define MILLRACE_HD __host__ __device__
#else
#define MILLRACE_HD
#endif
