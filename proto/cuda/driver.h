// NVIDIA's driver, loaded at run time: nothing of ours is linked against a CUDA library, and one program serves hosts
// with and without a GPU. One table a process; thread-safe once loaded.
//
//   MILLRACE_TRY(const Driver* driver, Driver::load());
//   MILLRACE_TRY_VOID(driver->checked(driver->cuCtxSetCurrent(context), "cuCtxSetCurrent"));
#pragma once

#include <string>

#include "proto/base/result.h"
#include "proto/cuda/driver_api.h"

namespace millrace::cuda {

struct Driver {
#define MILLRACE_FUNCTION(symbol, parameters) CUresult(*symbol) parameters = nullptr;
  MILLRACE_CUDA_FUNCTIONS(MILLRACE_FUNCTION)
#undef MILLRACE_FUNCTION

  // Loads libcuda.so.1 and calls cuInit(), once a process; not to be called between fork() and exec(). kUnsupported: there
  // is no driver here, or one that is too old, or no GPU; kUnavailable: another process may find it ready later. The
  // message says which, and what to do.
  static Result<const Driver*> load();

  // The one way in which a call is judged. kExhausted: out of memory, after which the context goes on. kUnavailable:
  // anything else: the context, and with it this process's use of the GPU, is not to be relied upon any more.
  Result<void> checked(CUresult result, const char* call) const {
    if (result == CUDA_SUCCESS) return {};
    return failed(result, call);
  }

  // "CUDA_ERROR_ILLEGAL_ADDRESS (700)".
  std::string name(CUresult result) const;

 private:
  Error failed(CUresult result, const char* call) const;
};

}  // namespace millrace::cuda
