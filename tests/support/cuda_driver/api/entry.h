// What every entry point of the driver begins with. Thread-safe.
#pragma once

#include "tests/support/cuda_driver/objects.h"

namespace millrace::cuda {

// Results that driver_api.h has no name for. The process is ending, and the driver has ended already:
inline constexpr CUresult kDeinitialised = 4;
// Another process has the device for itself:
inline constexpr CUresult kDeviceUnavailable = 46;
// A thread block takes more than a multiprocessor has:
inline constexpr CUresult kLaunchOutOfResources = 701;
// What connects the devices is not ready; libcuda.so.1 is of another version than the kernel's module; it is one for older
// modules, which this device cannot do with:
inline constexpr CUresult kSystemNotReady = 802, kDriverMismatch = 803, kCompatNotSupported = 804;

// The entry points, with the types that they are called by.
#define MILLRACE_EXPORT extern "C" __attribute__((visibility("default"))) CUresult
#define MILLRACE_DECLARE(symbol, parameters) MILLRACE_EXPORT symbol parameters;
MILLRACE_CUDA_FUNCTIONS(MILLRACE_DECLARE)
// Not called by the project, but by those who use its tensors.
MILLRACE_DECLARE(cuStreamBeginCapture_v2, (CUstream, int))
MILLRACE_DECLARE(cuStreamEndCapture, (CUstream, void**))
#undef MILLRACE_DECLARE

#define MILLRACE_RETURN_IF_FAILED(call) \
  if (const CUresult result_of_call = (call); result_of_call != CUDA_SUCCESS) return result_of_call

}  // namespace millrace::cuda

namespace millrace::sim {

cuda::CUresult initialise();
// What SIM_CUDA_INIT_RESULT says of the host at this moment.
cuda::CUresult host_result();

// CUDA_SUCCESS: the driver may be called, here and now.
cuda::CUresult enter_driver();
// And the thread has a current context, which is well.
cuda::CUresult enter_context();
// And no capture forbids what may wait for the device, or change its memory.
cuda::CUresult enter_unsafe();
// And `stream` is one of that context's, which `found` keeps.
cuda::CUresult enter_stream(cuda::CUstream stream, std::shared_ptr<cuda::Stream>& found);
// And `device` is one.
cuda::CUresult enter_device(cuda::CUdevice device);

cuda::Context* current_context();  // of this thread; may be null
// Null: none. Error: CUDA_ERROR_INVALID_CONTEXT: it is no context that anybody retains.
cuda::CUresult set_current_context(cuda::Context* context);

// As complain(), and returns `result`.
cuda::CUresult refuse(const char* why, cuda::CUresult result);

// What a call fails with at once, by SIM_CUDA_FAULTS. For calls that give nothing to a stream.
cuda::CUresult fault_now(const char* operation, const char* name);

// Into the stream, with the fault that this one is to have, if any: what is not sticky is answered at once.
cuda::CUresult submit(cuda::Stream& stream, Operation operation);

}  // namespace millrace::sim
