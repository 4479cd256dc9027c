// Failures to order: SIM_CUDA_FAULTS is a list of OPERATION:NAME:N=RESULT, divided by semicolons. The N-th call of
// that operation and name (*: of any) fails with that result; RESULT may be `hang` for what streams do.
//
//   launch:millrace_reconstruct:2=700   copy:HtoD:1=214   alloc:cuMemCreate:1=2   register:*:3=2   launch:*:5=hang
//
// A list that cannot be read ends the process. Thread-safe.
#pragma once

#include <string_view>

#include "proto/cuda/driver_api.h"

namespace millrace::sim {

struct Fault {
  cuda::CUresult result = cuda::CUDA_SUCCESS;
  bool hangs = false;
};

// Counts this call.
Fault next_fault(std::string_view operation, std::string_view name);

// Whether a context never answers anything else afterwards.
bool is_sticky(cuda::CUresult result);

}  // namespace millrace::sim
