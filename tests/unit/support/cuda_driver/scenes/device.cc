// Which devices there are, and what they are like.
#include <algorithm>
#include <cstdio>
#include <thread>

#include "tests/support/cuda_driver/uuid.h"
#include "tests/unit/support/cuda_driver/scenes/scenes.h"

namespace millrace::cuda_scenes {
namespace {

int attribute(const Gpu& gpu, int which) {
  int value = -1;
  need(gpu.cu.cuDeviceGetAttribute(&value, which, gpu.device), "cuDeviceGetAttribute");
  return value;
}

int device(Arguments) {
  const Gpu gpu;
  const Driver& cu = gpu.cu;
  char name[64], bus[64];
  std::size_t bytes = 0;
  need(cu.cuDeviceGetName(name, sizeof(name), gpu.device), "cuDeviceGetName");
  need(cu.cuDeviceGetPCIBusId(bus, sizeof(bus), gpu.device), "cuDeviceGetPCIBusId");
  need(cu.cuDeviceTotalMem_v2(&bytes, gpu.device), "cuDeviceTotalMem");
  std::printf("%s at %s, %zu MiB\n", name, bus, bytes >> 20);
  std::printf("%d.%d, %d multiprocessors, sharing %d\n", attribute(gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
              attribute(gpu, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
              attribute(gpu, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
              attribute(gpu, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED));
  CUdevice other = 0;
  say("device 1", cu.cuDeviceGet(&other, 1));
  say("a number as a handle", cu.cuDeviceTotalMem_v2(&bytes, 0));
  std::thread([&] {
    CUdeviceptr at = 0;
    say("without a context", cu.cuMemAlloc_v2(&at, 1));
  }).join();
  return 0;
}

// The index on the host of each that the process sees, in its order; and whether its UUID is that one's.
int visible(Arguments) {
  const Gpu gpu;
  int count = 0;
  need(gpu.cu.cuDeviceGetCount(&count), "cuDeviceGetCount");
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice handle = -1;
    CUuuid uuid{};
    char name[64];
    need(gpu.cu.cuDeviceGet(&handle, ordinal), "cuDeviceGet");
    need(gpu.cu.cuDeviceGetName(name, sizeof(name), handle), "cuDeviceGetName");
    need(gpu.cu.cuDeviceGetUuid_v2(&uuid, handle), "cuDeviceGetUuid");
    int index = -1;
    std::sscanf(name, "Simulated GPU %d", &index);
    const bool is_its = std::ranges::equal(uuid.bytes, sim::uuid_of(index));
    const bool is_random = uuid.bytes[6] >> 4 == 4 && uuid.bytes[8] >> 6 == 2;  // version 4
    std::printf("%d%s ", index, is_its && is_random && handle >= 8 ? "" : "?");
  }
  return 0;
}

constexpr Scene kDeviceScenes[] = {{"device", device}, {"visible", visible}};

}  // namespace

std::span<const Scene> device_scenes() {
  return kDeviceScenes;
}

}  // namespace millrace::cuda_scenes
