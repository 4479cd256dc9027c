// What calls of the CUDA runtime came to. Every raw call of the project goes through checked(). Values; thread-safe.
#pragma once

#include <cuda_runtime_api.h>

namespace millrace::kernels::cuda {

// The first call that failed, or none.
struct [[nodiscard]] CudaStatus {
  cudaError_t error = cudaSuccess;
  const char* call = "";  // static storage

  bool ok() const { return error == cudaSuccess; }
  const char* reason() const { return cudaGetErrorString(error); }
};

inline CudaStatus checked(cudaError_t error, const char* call) {
  return {error, call};
}

}  // namespace millrace::kernels::cuda

// Returns from a function that returns a CudaStatus when `call` failed.
#define MILLRACE_RETURN_IF_CUDA_FAILED(call)                                                 \
  do {                                                                                       \
    if (const auto millrace_cuda_status = ::millrace::kernels::cuda::checked((call), #call); \
        !millrace_cuda_status.ok())                                                          \
      return millrace_cuda_status;                                                           \
  } while (false)
