// Compiled, never linked, where a toolkit is: driver_api.h says what cuda.h says.
#include <cuda.h>

#include <type_traits>

// clang-format off
#define CONSTANTS(X)                                                                                          \
  X(CUDA_ERROR_INVALID_VALUE) X(CUDA_ERROR_OUT_OF_MEMORY) X(CUDA_ERROR_NOT_INITIALIZED)                       \
  X(CUDA_ERROR_STUB_LIBRARY) X(CUDA_ERROR_NO_DEVICE) X(CUDA_ERROR_INVALID_DEVICE)                             \
  X(CUDA_ERROR_INVALID_IMAGE) X(CUDA_ERROR_INVALID_CONTEXT) X(CUDA_ERROR_MAP_FAILED)                          \
  X(CUDA_ERROR_NO_BINARY_FOR_GPU) X(CUDA_ERROR_ECC_UNCORRECTABLE) X(CUDA_ERROR_INVALID_HANDLE)                \
  X(CUDA_ERROR_NOT_FOUND) X(CUDA_ERROR_NOT_READY) X(CUDA_ERROR_ILLEGAL_ADDRESS)                               \
  X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED)                       \
  X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION) X(CUDA_ERROR_LAUNCH_FAILED) X(CUDA_ERROR_NOT_PERMITTED)               \
  X(CUDA_ERROR_NOT_SUPPORTED) X(CUDA_ERROR_UNKNOWN) X(CUDA_ERROR_DEVICE_UNAVAILABLE)                          \
  X(CUDA_ERROR_SYSTEM_NOT_READY) X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)                                         \
  X(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE) X(CUDA_ERROR_OPERATING_SYSTEM)                                 \
  X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)                 \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)    \
  X(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS)                                                        \
  X(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)                                                  \
  X(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED)                                          \
  X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) X(CU_MEM_ALLOCATION_TYPE_PINNED)                         \
  X(CU_MEM_LOCATION_TYPE_DEVICE) X(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)                                  \
  X(CU_MEM_ACCESS_FLAGS_PROT_NONE) X(CU_MEM_ACCESS_FLAGS_PROT_READ) X(CU_MEM_ACCESS_FLAGS_PROT_READWRITE)     \
  X(CU_MEM_ALLOC_GRANULARITY_MINIMUM) X(CU_STREAM_NON_BLOCKING) X(CU_EVENT_BLOCKING_SYNC)                     \
  X(CU_EVENT_DISABLE_TIMING) X(CU_STREAM_WAIT_VALUE_GEQ) X(CU_CTX_SCHED_BLOCKING_SYNC)                        \
  X(CU_MEMHOSTREGISTER_PORTABLE) X(CU_MEMHOSTREGISTER_READ_ONLY) X(CU_STREAM_CAPTURE_MODE_RELAXED)
// clang-format on

namespace real {
enum Value : long long {
#define X(name) real_##name = static_cast<long long>(name),
  CONSTANTS(X)
#undef X
};
}  // namespace real
#undef cuEventElapsedTime  // to _v2 in cuda.h 13; _v1 is in every driver
extern "C" ::CUresult cuEventElapsedTime(float*, ::CUevent, ::CUevent);
#undef CU_MEMHOSTREGISTER_PORTABLE
#undef CU_MEMHOSTREGISTER_READ_ONLY
#include "proto/cuda/driver_api.h"
namespace mine = millrace::cuda;

#define X(name) static_assert(real::real_##name == static_cast<long long>(mine::name), #name);
CONSTANTS(X)
#undef X
static_assert(sizeof(::CUuuid) == sizeof(mine::CUuuid) && sizeof(::CUmemAccessDesc) == sizeof(mine::CUmemAccessDesc));
static_assert(sizeof(::CUmemAllocationProp) == sizeof(mine::CUmemAllocationProp));
static_assert(offsetof(::CUmemAllocationProp, location) == offsetof(mine::CUmemAllocationProp, location));
static_assert(offsetof(::CUmemAllocationProp, allocFlags) == offsetof(mine::CUmemAllocationProp, allocFlags));

// Signatures: as many parameters, each of the same size, and a pointer in both or in neither.
template <class F, class G>
struct Alike;
template <class R, class... A, class S, class... B>
struct Alike<R (*)(A...), S (*)(B...)> {
  static constexpr bool value() {
    if constexpr (sizeof...(A) == sizeof...(B))
      return ((sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>)&&...);
    else
      return false;
  }
};
namespace millrace::cuda {
struct Table {
#define X(symbol, parameters) CUresult(*symbol) parameters;
  MILLRACE_CUDA_FUNCTIONS(X)
#undef X
};
}  // namespace millrace::cuda
#define X(symbol, parameters) \
  static_assert(Alike<decltype(&::symbol), decltype(mine::Table::symbol)>::value(), #symbol);
MILLRACE_CUDA_FUNCTIONS(X)
