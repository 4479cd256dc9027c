// libnvidia-ml.so.1, as far as a daemon asks: who the devices are and how they do. What they use is known where there
// is a control file, in which every process writes what it has. Thread-safe.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "tests/support/cuda_driver/control.h"
#include "tests/support/cuda_driver/uuid.h"

// A program that loads the library declares its functions itself, with a type for devices of its own: no business of
// UndefinedBehaviorSanitizer's.
#if defined(__clang__)
#define MILLRACE_EXPORT extern "C" __attribute__((visibility("default"), no_sanitize("function")))
#else
#define MILLRACE_EXPORT extern "C" __attribute__((visibility("default")))
#endif

namespace millrace::sim {
namespace {

enum Result { kSuccess = 0, kUninitialised = 1, kInvalidArgument = 2, kNotFound = 6, kGpuIsLost = 15 };

struct Device {
  int index;
};
struct MemoryUse {
  unsigned long long total, free, used;
};
struct Utilisation {
  unsigned gpu, memory;
};

constexpr Device kDevices[kMostDevices] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
std::atomic<bool> initialised{false};

DeviceControl& control_of(const Device& device) {
  return Control::get().device(device.index);
}

int check(const Device* device) {
  if (!initialised) return kUninitialised;
  if (device == nullptr) return kInvalidArgument;
  return control_of(*device).lost != 0 ? kGpuIsLost : kSuccess;
}

// Runs `answer` where the device can be asked.
template <class Answer>
int ask(const Device* device, Answer answer) {
  const int result = check(device);
  if (result == kSuccess) answer();
  return result;
}

}  // namespace

MILLRACE_EXPORT int nvmlInit_v2() {
  initialised = true;
  return kSuccess;
}

MILLRACE_EXPORT int nvmlShutdown() {
  return initialised.exchange(false) ? kSuccess : kUninitialised;
}

MILLRACE_EXPORT const char* nvmlErrorString(int result) {
  if (result == kGpuIsLost) return "GPU is lost";
  return result == kSuccess ? "Success" : "Error";
}

MILLRACE_EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(settings().devices);
  return initialised ? kSuccess : kUninitialised;
}

MILLRACE_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, const Device** device) {
  if (!initialised) return kUninitialised;
  if (index >= static_cast<unsigned>(settings().devices)) return kInvalidArgument;
  *device = &kDevices[index];
  return kSuccess;
}

MILLRACE_EXPORT int nvmlDeviceGetHandleByUUID(const char* uuid, const Device** device) {
  for (int i = 0; i < settings().devices; ++i) {
    if (uuid_text(i) == uuid) return nvmlDeviceGetHandleByIndex_v2(static_cast<unsigned>(i), device);
  }
  return initialised ? kNotFound : kUninitialised;
}

MILLRACE_EXPORT int nvmlDeviceGetName(const Device* device, char* name, unsigned size) {
  return ask(device, [&] { std::snprintf(name, size, "Simulated GPU %d", device->index); });
}

MILLRACE_EXPORT int nvmlDeviceGetUUID(const Device* device, char* uuid, unsigned size) {
  return ask(device, [&] { std::snprintf(uuid, size, "%s", uuid_text(device->index).c_str()); });
}

MILLRACE_EXPORT int nvmlDeviceGetComputeMode(const Device* device, int* mode) {
  return ask(device, [&] {
    const char* const said = std::getenv("SIM_CUDA_COMPUTE_MODE");
    *mode = said == nullptr ? 0 : std::atoi(said);
  });
}

MILLRACE_EXPORT int nvmlDeviceGetMemoryInfo(const Device* device, MemoryUse* memory) {
  return ask(device, [&] {
    const unsigned long long total = settings().vram_bytes;
    const unsigned long long used = std::min<unsigned long long>(Control::get().used(device->index), total);
    *memory = {total, total - used, used};
  });
}

MILLRACE_EXPORT int nvmlDeviceGetUtilizationRates(const Device* device, Utilisation* rates) {
  return ask(device, [&] { *rates = {control_of(*device).busy_percent, 0}; });
}

MILLRACE_EXPORT int nvmlDeviceGetPowerUsage(const Device* device, unsigned* milliwatt) {
  return ask(device, [&] { *milliwatt = control_of(*device).milliwatt; });
}

MILLRACE_EXPORT int nvmlDeviceGetTemperature(const Device* device, int, unsigned* celsius) {
  return ask(device, [&] { *celsius = control_of(*device).celsius; });
}

}  // namespace millrace::sim
