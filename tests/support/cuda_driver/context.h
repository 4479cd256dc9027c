// A device's primary context, and what its calls answer once something went wrong. Thread-safe.
#pragma once

#include <atomic>

#include "proto/cuda/driver_api.h"

namespace millrace::cuda {

struct Context {
  int device = 0;
  std::atomic<int> retained{0};
  std::atomic<unsigned> flags{0};
  std::atomic<CUresult> sticky{CUDA_SUCCESS};
};

}  // namespace millrace::cuda

namespace millrace::sim {

// What the context or, for all processes, the device answers to everything; CUDA_SUCCESS: both are well.
cuda::CUresult health_of(const cuda::Context& context);

// The first of them stays.
void stick(cuda::Context& context, cuda::CUresult result);

}  // namespace millrace::sim
