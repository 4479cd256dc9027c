#include "daemon/backend/cuda/worker/gpu.h"

#include <algorithm>
#include <cstring>

namespace millrace::cuda {
namespace {

Result<CudaReady> describe(const Driver& driver, int ordinal) {
  CUdevice device = 0;
  CudaReady ready{.ordinal = ordinal};
  std::size_t bytes = 0;
  CUuuid uuid{};
  const auto attribute = [&](int& value, int which) {
    return driver.checked(driver.cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
  };
  MILLRACE_TRY_VOID(driver.checked(driver.cuDeviceGet(&device, ordinal), "cuDeviceGet"));
  MILLRACE_TRY_VOID(driver.checked(driver.cuDeviceGetUuid_v2(&uuid, device), "cuDeviceGetUuid"));
  MILLRACE_TRY_VOID(
      driver.checked(driver.cuDeviceGetName(ready.name, sizeof ready.name - 1, device), "cuDeviceGetName"));
  MILLRACE_TRY_VOID(driver.checked(driver.cuDeviceTotalMem_v2(&bytes, device), "cuDeviceTotalMem"));
  MILLRACE_TRY_VOID(attribute(ready.major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  MILLRACE_TRY_VOID(attribute(ready.minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  MILLRACE_TRY_VOID(attribute(ready.multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  MILLRACE_TRY_VOID(driver.checked(driver.cuDriverGetVersion(&ready.driver_version), "cuDriverGetVersion"));
  std::memcpy(ready.uuid, uuid.bytes, sizeof ready.uuid);
  ready.memory_bytes = bytes;
  return ready;
}

Result<CUdevice> find(const Driver& driver, const std::uint8_t (&uuid)[16]) {
  int count = 0;
  MILLRACE_TRY_VOID(driver.checked(driver.cuDeviceGetCount(&count), "cuDeviceGetCount"));
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice device = 0;
    CUuuid other{};
    if (driver.cuDeviceGet(&device, ordinal) == CUDA_SUCCESS &&
        driver.cuDeviceGetUuid_v2(&other, device) == CUDA_SUCCESS && std::equal(uuid, uuid + 16, other.bytes))
      return device;
  }
  return Error{Code::kUnavailable, "the GPU is not there any more"};
}

}  // namespace

Result<std::vector<CudaReady>> list_gpus(const Driver& driver) {
  int count = 0;
  MILLRACE_TRY_VOID(driver.checked(driver.cuDeviceGetCount(&count), "cuDeviceGetCount"));
  std::vector<CudaReady> gpus;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    const Result<CudaReady> ready = describe(driver, ordinal);
    if (ready) gpus.push_back(*ready);  // a sick one does not stand in the others' way
  }
  if (gpus.empty()) return Error{Code::kUnsupported, "the driver has no GPU for this process (CUDA_VISIBLE_DEVICES?)"};
  return gpus;
}

Result<CudaReady> describe_gpu(const Driver& driver, const std::uint8_t (&uuid)[16]) {
  MILLRACE_TRY(const std::vector<CudaReady> gpus, list_gpus(driver));
  const auto found = std::ranges::find_if(
      gpus, [&](const CudaReady& gpu) { return std::equal(std::begin(uuid), std::end(uuid), std::begin(gpu.uuid)); });
  if (found == gpus.end()) return Error{Code::kUnavailable, "the GPU is not there any more"};
  return *found;
}

Result<GpuContext> GpuContext::open(const Driver& driver, const std::uint8_t (&uuid)[16]) {
  MILLRACE_TRY(const CUdevice device, find(driver, uuid));
  GpuContext context(driver, device);
  MILLRACE_TRY_VOID(driver.checked(driver.cuDevicePrimaryCtxSetFlags_v2(context.device_, CU_CTX_SCHED_BLOCKING_SYNC),
                                   "cuDevicePrimaryCtxSetFlags"));
  MILLRACE_TRY_VOID(
      driver.checked(driver.cuDevicePrimaryCtxRetain(&context.context_, context.device_), "cuDevicePrimaryCtxRetain"));
  MILLRACE_TRY_VOID(context.use());
  return context;
}

Result<void> GpuMemory::allocate(std::size_t bytes) {
  release();
  MILLRACE_TRY_VOID(driver_.checked(driver_.cuMemAlloc_v2(&at_, bytes), "cuMemAlloc"));
  size_ = bytes;
  return {};
}

void GpuMemory::release() {
  if (size_ != 0) static_cast<void>(driver_.cuMemFree_v2(at_));
  size_ = 0;
}

Result<void> PinnedMemory::pin(std::byte* at, std::size_t bytes) {
  MILLRACE_TRY_VOID(
      driver_.checked(driver_.cuMemHostRegister_v2(at, bytes, CU_MEMHOSTREGISTER_PORTABLE), "cuMemHostRegister"));
  at_ = at;
  return {};
}

Result<void> GpuStream::create() {
  int least = 0, greatest = 0;
  MILLRACE_TRY_VOID(
      driver_.checked(driver_.cuCtxGetStreamPriorityRange(&least, &greatest), "cuCtxGetStreamPriorityRange"));
  MILLRACE_TRY_VOID(driver_.checked(driver_.cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, least),
                                    "cuStreamCreateWithPriority"));
  return driver_.checked(driver_.cuEventCreate(&end_, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING),
                         "cuEventCreate");
}

Result<void> GpuStream::wait() {
  MILLRACE_TRY_VOID(driver_.checked(driver_.cuEventRecord(end_, stream_), "cuEventRecord"));
  return driver_.checked(driver_.cuEventSynchronize(end_), "cuEventSynchronize");
}

GpuStream::~GpuStream() {
  if (end_ != nullptr) static_cast<void>(driver_.cuEventDestroy_v2(end_));
  if (stream_ != nullptr) static_cast<void>(driver_.cuStreamDestroy_v2(stream_));
}

}  // namespace millrace::cuda
