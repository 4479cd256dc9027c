// The part of NVIDIA's driver API that the project calls, declared by us: no CUDA toolkit is needed to build. Names,
// values and layouts are those of cuda.h; check_driver_api.cc compares them where a toolkit is. Every function is named with
// the version of its symbol, which is what dlsym() asks for.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::cuda {

using CUresult = int;
enum : CUresult {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_STUB_LIBRARY = 34,
  CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_MAP_FAILED = 205,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_ECC_UNCORRECTABLE = 214,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ERROR_OPERATING_SYSTEM = 304,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
  CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_NOT_PERMITTED = 800,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_SYSTEM_NOT_READY = 802,
  CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
  CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
  CUDA_ERROR_UNKNOWN = 999,
};

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUmemGenericAllocationHandle = unsigned long long;
using CUcontext = struct Context*;
using CUmodule = struct Module*;
using CUfunction = struct Function*;
using CUstream = struct Stream*;
using CUevent = struct Event*;
using CUhostFn = void (*)(void*);
struct CUuuid {
  unsigned char bytes[16];
};

struct CUmemLocation {
  int type;
  int id;
};
struct CUmemAllocationProp {
  int type;                  // 1: pinned
  int requestedHandleTypes;  // 1: POSIX file descriptor
  CUmemLocation location;    // type 1: device
  void* win32HandleMetaData;
  struct {
    unsigned char compressionType, gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
  } allocFlags;
};
struct CUmemAccessDesc {
  CUmemLocation location;
  int flags;
};

enum : int {
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS = 122,
  CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
  CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_MEM_ALLOCATION_TYPE_PINNED = 1,
  CU_MEM_LOCATION_TYPE_DEVICE = 1,
  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
  CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
  CU_MEM_ACCESS_FLAGS_PROT_READ = 1,
  CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
  CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2,
};
enum : unsigned {
  CU_STREAM_NON_BLOCKING = 1,
  CU_EVENT_BLOCKING_SYNC = 1,
  CU_EVENT_DISABLE_TIMING = 2,
  CU_STREAM_WAIT_VALUE_GEQ = 0,
  CU_CTX_SCHED_BLOCKING_SYNC = 4,
  CU_MEMHOSTREGISTER_PORTABLE = 1,
  CU_MEMHOSTREGISTER_READ_ONLY = 8,
};

// X(symbol, (parameters)). All are in drivers of CUDA 12.0 and later (R525).
// clang-format off
#define MILLRACE_CUDA_FUNCTIONS(X)                                                                            \
  X(cuInit, (unsigned)) X(cuDriverGetVersion, (int*)) X(cuGetErrorName, (CUresult, const char**))             \
  X(cuGetErrorString, (CUresult, const char**)) X(cuDeviceGetCount, (int*)) X(cuDeviceGet, (CUdevice*, int))  \
  X(cuDeviceGetName, (char*, int, CUdevice)) X(cuDeviceGetUuid_v2, (CUuuid*, CUdevice))                       \
  X(cuDeviceGetAttribute, (int*, int, CUdevice)) X(cuDeviceTotalMem_v2, (size_t*, CUdevice))                  \
  X(cuDeviceCanAccessPeer, (int*, CUdevice, CUdevice))                                                        \
  X(cuDeviceGetPCIBusId, (char*, int, CUdevice)) X(cuDevicePrimaryCtxSetFlags_v2, (CUdevice, unsigned))       \
  X(cuDevicePrimaryCtxRetain, (CUcontext*, CUdevice)) X(cuDevicePrimaryCtxRelease_v2, (CUdevice))             \
  X(cuCtxSetCurrent, (CUcontext)) X(cuCtxGetCurrent, (CUcontext*))                                            \
  X(cuCtxGetStreamPriorityRange, (int*, int*)) X(cuModuleLoadData, (CUmodule*, const void*))                  \
  X(cuModuleUnload, (CUmodule)) X(cuModuleGetFunction, (CUfunction*, CUmodule, const char*))                  \
  X(cuFuncSetAttribute, (CUfunction, int, int))                                                               \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int*, CUfunction, int, size_t))                             \
  X(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**))\
  X(cuStreamCreateWithPriority, (CUstream*, unsigned, int)) X(cuStreamDestroy_v2, (CUstream))                 \
  X(cuStreamSynchronize, (CUstream)) X(cuStreamQuery, (CUstream))                                             \
  X(cuStreamWaitEvent, (CUstream, CUevent, unsigned)) X(cuThreadExchangeStreamCaptureMode, (int*))            \
  X(cuStreamWriteValue64_v2, (CUstream, CUdeviceptr, std::uint64_t, unsigned))                                \
  X(cuStreamWaitValue64_v2, (CUstream, CUdeviceptr, std::uint64_t, unsigned))                                 \
  X(cuLaunchHostFunc, (CUstream, CUhostFn, void*)) X(cuEventCreate, (CUevent*, unsigned))                     \
  X(cuEventDestroy_v2, (CUevent)) X(cuEventRecord, (CUevent, CUstream)) X(cuEventQuery, (CUevent))            \
  X(cuEventSynchronize, (CUevent)) X(cuEventElapsedTime, (float*, CUevent, CUevent))                          \
  X(cuMemGetInfo_v2, (size_t*, size_t*)) X(cuMemAlloc_v2, (CUdeviceptr*, size_t))                             \
  X(cuMemFree_v2, (CUdeviceptr)) X(cuMemGetAddressRange_v2, (CUdeviceptr*, size_t*, CUdeviceptr))             \
  X(cuMemHostRegister_v2, (void*, size_t, unsigned)) X(cuMemHostUnregister, (void*))                          \
  X(cuMemHostGetDevicePointer_v2, (CUdeviceptr*, void*, unsigned))                                            \
  X(cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void*, size_t, CUstream))                                       \
  X(cuMemcpyDtoHAsync_v2, (void*, CUdeviceptr, size_t, CUstream))                                             \
  X(cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                                       \
  X(cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream))                                          \
  X(cuMemGetAllocationGranularity, (size_t*, const CUmemAllocationProp*, int))                                \
  X(cuMemCreate, (CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*, unsigned long long))     \
  X(cuMemRelease, (CUmemGenericAllocationHandle))                                                             \
  X(cuMemAddressReserve, (CUdeviceptr*, size_t, size_t, CUdeviceptr, unsigned long long))                     \
  X(cuMemAddressFree, (CUdeviceptr, size_t))                                                                  \
  X(cuMemMap, (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long))                \
  X(cuMemUnmap, (CUdeviceptr, size_t))                                                                        \
  X(cuMemSetAccess, (CUdeviceptr, size_t, const CUmemAccessDesc*, size_t))                                    \
  X(cuMemExportToShareableHandle, (void*, CUmemGenericAllocationHandle, int, unsigned long long))             \
  X(cuMemImportFromShareableHandle, (CUmemGenericAllocationHandle*, void*, int))
// clang-format on

}  // namespace millrace::cuda
