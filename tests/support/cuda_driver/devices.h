// Which of the host's devices this process sees, by CUDA_VISIBLE_DEVICES, and by which handles. Read once a process.
#pragma once

#include "proto/cuda/driver_api.h"

namespace millrace::sim {

int visible_devices();
// The handle, which is not that number. Negative: there is none.
cuda::CUdevice device_at(int ordinal);
// On the host, for all processes. Negative: it is no handle of a device that this process sees.
int index_of(cuda::CUdevice device);

}  // namespace millrace::sim
