// What the administrator decides about NVIDIA's GPUs: the keys backends.cuda and cuda.*. Value.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/backend/cuda/gpu_list.h"
#include "daemon/backend/device_host/wanted.h"
#include "daemon/settings/keys.h"
#include "proto/base/bytes.h"

namespace millrace {

struct CudaSettings {
  Wanted wanted = Wanted::kNo;
  std::vector<std::string> devices;  // UUIDs, or numbers in the driver's order; empty: all
  std::uint32_t lanes = 2;           // of a GPU
  Bytes memory = 1_GiB;              // of a GPU's, for all of its lanes
  Bytes tensors = 2_GiB;             // of a GPU's, for tensors of sessions that are in its memory
  Bytes staging = 192_MiB;           // of the host's, for all lanes of a GPU; pinned, with kCudaPlans for each lane
  std::chrono::milliseconds hang{10'000};
  std::chrono::milliseconds rest{600'000};  // 0: never
  std::string worker;                       // the program that owns a GPU; empty: where it is installed
  std::string kernel_gpus = kKernelGpus;    // no key: a test has a folder of its own
};

SettingsPart cuda_settings();

// Memory of the GPUs that sessions may have, all together.
Bytes cuda_tensors(const CudaSettings& settings);

// Host memory that the GPUs take: of those that are named, or of those that the kernel's driver has, or of one.
Bytes cuda_staging(const CudaSettings& settings);

}  // namespace millrace
