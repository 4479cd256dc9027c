// What touches device memory wrongly. Host code that dereferences a device pointer dies, with one line that names the
// address; an operation of a stream that leaves its memory ends with CUDA_ERROR_ILLEGAL_ADDRESS. Thread-safe.
#pragma once

#include <functional>

#include "proto/cuda/driver_api.h"

namespace millrace::sim {

// Thrown by an operation that finds a bad address itself.
struct IllegalAddress {};

// Installs the signals' actions, before those that were there. Once a process.
void catch_illegal_access();

// Runs an operation of a stream. What `run` holds when it faults is lost: it must hold no lock.
cuda::CUresult guarded(const std::function<cuda::CUresult()>& run);

}  // namespace millrace::sim
