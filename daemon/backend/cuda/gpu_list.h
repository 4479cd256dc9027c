// Which GPUs there are: as CUDA says, asked in a process of its own, and as the kernel's driver says, which knows them
// before CUDA can be used. Functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "daemon/backend/cuda/cuda_wire.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"
#include "proto/cuda/uuid.h"

namespace millrace {

using CudaUuid = cuda::Uuid;

struct Gpu {
  int ordinal = 0;  // in the driver's order, which CUDA_VISIBLE_DEVICES changes
  CudaUuid uuid{};
  std::string name;
  // 0: CUDA has not said it yet.
  Bytes memory;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  int driver_version = 0;  // as CUDA counts: 13000 is 13.0
};

inline constexpr char kCudaProgram[] = "millrace-cuda";
// Empty: millrace-cuda beside this program, or in ../libexec/millrace.
std::string cuda_program(const std::string& path);

// Those that the driver gives to a process of this user. kUnsupported: there is no driver, no GPU, or none that will do,
// and why. kUnavailable: CUDA cannot be used as yet (the fabric manager is still starting), or does not answer.
Result<std::vector<Gpu>> list_gpus(const std::string& program);

// Those of whom the kernel's driver knows the UUID, in the order of their places on the bus; name and UUID alone. None
// without that driver. `folder`: kKernelGpus, but for tests.
inline constexpr char kKernelGpus[] = "/proc/driver/nvidia/gpus";
std::vector<Gpu> gpus_of_kernel(const std::string& folder);

// What the process that has the GPU says of it.
Result<Gpu> gpu_of(const CudaReady& ready_untrusted);

}  // namespace millrace
