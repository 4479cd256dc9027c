// Entry points: the driver itself, devices, contexts.
#include <algorithm>
#include <cstdio>

#include "tests/support/cuda_driver/api/entry.h"
#include "tests/support/cuda_driver/capture.h"
#include "tests/support/cuda_driver/control.h"
#include "tests/support/cuda_driver/devices.h"
#include "tests/support/cuda_driver/settings.h"
#include "tests/support/cuda_driver/uuid.h"

namespace millrace::cuda {
namespace {

using sim::settings;

const char* name_of(CUresult result) {
  switch (result) {
#define MILLRACE_NAME(name) \
  case name:                \
    return #name;
    MILLRACE_NAME(CUDA_SUCCESS)
    MILLRACE_NAME(CUDA_ERROR_INVALID_VALUE)
    MILLRACE_NAME(CUDA_ERROR_OUT_OF_MEMORY)
    MILLRACE_NAME(CUDA_ERROR_NOT_INITIALIZED)
    MILLRACE_NAME(CUDA_ERROR_STUB_LIBRARY)
    MILLRACE_NAME(CUDA_ERROR_NO_DEVICE)
    MILLRACE_NAME(CUDA_ERROR_INVALID_DEVICE)
    MILLRACE_NAME(CUDA_ERROR_INVALID_IMAGE)
    MILLRACE_NAME(CUDA_ERROR_INVALID_CONTEXT)
    MILLRACE_NAME(CUDA_ERROR_MAP_FAILED)
    MILLRACE_NAME(CUDA_ERROR_NO_BINARY_FOR_GPU)
    MILLRACE_NAME(CUDA_ERROR_ECC_UNCORRECTABLE)
    MILLRACE_NAME(CUDA_ERROR_INVALID_HANDLE)
    MILLRACE_NAME(CUDA_ERROR_OPERATING_SYSTEM)
    MILLRACE_NAME(CUDA_ERROR_NOT_FOUND)
    MILLRACE_NAME(CUDA_ERROR_NOT_READY)
    MILLRACE_NAME(CUDA_ERROR_ILLEGAL_ADDRESS)
    MILLRACE_NAME(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
    MILLRACE_NAME(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED)
    MILLRACE_NAME(CUDA_ERROR_LAUNCH_FAILED)
    MILLRACE_NAME(CUDA_ERROR_NOT_PERMITTED)
    MILLRACE_NAME(CUDA_ERROR_NOT_SUPPORTED)
    MILLRACE_NAME(CUDA_ERROR_UNKNOWN)
#undef MILLRACE_NAME
    case kDeinitialised:
      return "CUDA_ERROR_DEINITIALIZED";
    case kDeviceUnavailable:
      return "CUDA_ERROR_DEVICE_UNAVAILABLE";
    case kLaunchOutOfResources:
      return "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES";
    case kIllegalState:
      return "CUDA_ERROR_ILLEGAL_STATE";
    case kCaptureUnsupported:
      return "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
    case kCaptureInvalidated:
      return "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED";
    case kCaptureIsolation:
      return "CUDA_ERROR_STREAM_CAPTURE_ISOLATION";
    case kCapturedEvent:
      return "CUDA_ERROR_CAPTURED_EVENT";
    case kCaptureWrongThread:
      return "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD";
    case kSystemNotReady:
      return "CUDA_ERROR_SYSTEM_NOT_READY";
    case kDriverMismatch:
      return "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH";
    case kCompatNotSupported:
      return "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE";
    default:
      return nullptr;
  }
}

}  // namespace

MILLRACE_EXPORT cuInit(unsigned flags) {
  return flags == 0 ? sim::initialise() : CUDA_ERROR_INVALID_VALUE;
}

MILLRACE_EXPORT cuDriverGetVersion(int* version) {
  *version = settings().driver_version;
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuGetErrorName(CUresult result, const char** text) {
  *text = name_of(result);
  return *text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

MILLRACE_EXPORT cuGetErrorString(CUresult result, const char** text) {
  return cuGetErrorName(result, text);
}

MILLRACE_EXPORT cuDeviceGetCount(int* count) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_driver());
  *count = sim::visible_devices();
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuDeviceGet(CUdevice* device, int ordinal) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_driver());
  if (sim::device_at(ordinal) < 0) return CUDA_ERROR_INVALID_DEVICE;
  *device = sim::device_at(ordinal);
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuDeviceGetName(char* name, int size, CUdevice device) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_device(device));
  std::snprintf(name, static_cast<std::size_t>(size), "Simulated GPU %d", sim::index_of(device));
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuDeviceGetPCIBusId(char* id, int size, CUdevice device) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_device(device));
  std::snprintf(id, static_cast<std::size_t>(size), "0000:%02x:00.0", static_cast<unsigned>(sim::index_of(device)) + 1);
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_device(device));
  std::ranges::copy(sim::uuid_of(sim::index_of(device)), uuid->bytes);
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_device(device));
  *bytes = settings().vram_bytes;
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_device(device));
  MILLRACE_RETURN_IF_FAILED(sim::enter_device(peer));
  *can = device != peer && settings().peers ? 1 : 0;
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuDeviceGetAttribute(int* value, int attribute, CUdevice device) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_device(device));
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = settings().multiprocessors;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = settings().capability / 10;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = settings().capability % 10;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = sim::kMostSharedMemory;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
      *value = 1;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
      *value = settings().vmm ? 1 : 0;
      return CUDA_SUCCESS;
    default:
      return sim::refuse("an attribute that is not simulated", CUDA_ERROR_INVALID_VALUE);
  }
}

MILLRACE_EXPORT cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_device(device));
  sim::objects().contexts[sim::index_of(device)].flags = flags;
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_device(device));
  Context& primary = sim::objects().contexts[sim::index_of(device)];
  if (primary.retained == 0 && sim::host_result() == kDeviceUnavailable) return kDeviceUnavailable;
  MILLRACE_RETURN_IF_FAILED(sim::health_of(primary));
  if (primary.retained++ == 0 && !sim::Control::get().charge(primary.device, settings().context_bytes)) {
    --primary.retained;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *context = &primary;
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_device(device));
  std::atomic<int>& retained = sim::objects().contexts[sim::index_of(device)].retained;
  if (retained == 0) return sim::refuse("a context released too often", CUDA_ERROR_INVALID_CONTEXT);
  if (--retained == 0) sim::Control::get().release(sim::index_of(device), settings().context_bytes);
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuCtxSetCurrent(CUcontext context) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_driver());
  return sim::set_current_context(context);
}

MILLRACE_EXPORT cuCtxGetCurrent(CUcontext* context) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_driver());
  *context = sim::current_context();
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_context());
  *least = kLeastPriority;
  *greatest = kGreatestPriority;
  return CUDA_SUCCESS;
}

}  // namespace millrace::cuda
