// A GPU's memory that processes share by descriptor: what its maker and its importers have to say alike.
#pragma once

#include <cstddef>

#include "proto/base/result.h"
#include "proto/cuda/driver.h"

namespace millrace::cuda {

inline CUmemAllocationProp shared_memory_of(CUdevice device) {
  return {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
          .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
          .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
          .win32HandleMetaData = nullptr,
          .allocFlags = {}};
}

// kUnsupported: the GPU, or its driver, has no such memory.
Result<void> can_share_memory(const Driver& driver, CUdevice device);

// What an allocation of `bytes` takes: whole granules of the GPU.
Result<std::size_t> shared_memory_size(const Driver& driver, CUdevice device, std::size_t bytes);

}  // namespace millrace::cuda
