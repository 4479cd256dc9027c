#include "proto/cuda/shared_memory.h"

#include <algorithm>

namespace millrace::cuda {

Result<void> can_share_memory(const Driver& driver, CUdevice device) {
  for (const int attribute : {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                              CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED}) {
    int supported = 0;
    MILLRACE_TRY_VOID(
        driver.checked(driver.cuDeviceGetAttribute(&supported, attribute, device), "cuDeviceGetAttribute"));
    if (supported == 0)
      return Error{Code::kUnsupported, "this GPU, or its driver, has no memory that is shared by descriptor"};
  }
  return {};
}

Result<std::size_t> shared_memory_size(const Driver& driver, CUdevice device, std::size_t bytes) {
  const CUmemAllocationProp properties = shared_memory_of(device);
  std::size_t granule = 0;
  MILLRACE_TRY_VOID(
      driver.checked(driver.cuMemGetAllocationGranularity(&granule, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                     "cuMemGetAllocationGranularity"));
  return (std::max<std::size_t>(bytes, 1) + granule - 1) / granule * granule;
}

}  // namespace millrace::cuda
