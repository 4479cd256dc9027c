// What goes wrong to order, and how a process finds its driver.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <thread>

#include "tests/support/cuda_driver/uuid.h"
#include "tests/unit/support/cuda_driver/scenes/scenes.h"

namespace millrace::cuda_scenes {
namespace {

constexpr std::size_t kFaultBytes = 5000;

int load(Arguments) {
  const Result<const Driver*> driver = Driver::load();
  if (!driver) {
    std::printf("%s\n", driver.error().message.c_str());
    return 4;
  }
  int version = 0, count = 0;
  need((*driver)->cuDriverGetVersion(&version), "cuDriverGetVersion");
  need((*driver)->cuDeviceGetCount(&count), "cuDeviceGetCount");
  std::printf("version %d, %d devices\n", version, count);
  return 0;
}

// Twice, with a line read between, in a process that loads the driver itself: ours remembers how that went.
int init(Arguments) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  need(library == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS, "dlopen");
  const auto call = [&](const char* name, auto... arguments) {
    auto* const function = reinterpret_cast<CUresult (*)(decltype(arguments)...)>(dlsym(library, name));
    say(name, function == nullptr ? CUDA_ERROR_NOT_FOUND : function(arguments...));
  };
  for (int round = 0; round < 2; ++round) {
    int count = 0;
    CUdevice device = -1;
    CUcontext context = nullptr;
    const auto begun = std::chrono::steady_clock::now();
    call("cuInit", 0U);
    const auto took = std::chrono::steady_clock::now() - begun;
    if (took >= std::chrono::milliseconds(200)) std::printf("after 200 ms or more\n");
    call("cuDeviceGetCount", &count);
    call("cuDeviceGet", &device, 0);
    call("cuDevicePrimaryCtxRetain", &context, device);
    std::string line;
    if (round == 0) std::getline(std::cin, line);
  }
  return 0;
}

CUresult launch(const Gpu& gpu, CUfunction function, CUstream stream) {
  // Refused by the kernel itself, were it to run: null pointers.
  std::byte parameter[1024] = {};
  void* parameters[] = {parameter};
  return gpu.cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr);
}

// Each step's result. The copies are fine; the launch is only made where the faults are of launches.
int steps(Arguments arguments) {
  const Gpu gpu;
  const Driver& cu = gpu.cu;
  const CUstream stream = gpu.stream();
  const CUfunction function = gpu.function("millrace_reconstruct");
  CUdeviceptr memory = 0, more = 0;
  static unsigned char buffer[kFaultBytes];
  say("alloc", cu.cuMemAlloc_v2(&memory, kFaultBytes));
  say("register", cu.cuMemHostRegister_v2(buffer, kFaultBytes, 0));
  if (memory != 0) say("copy", cu.cuMemcpyHtoDAsync_v2(memory, buffer, kFaultBytes, stream));
  if (!arguments.empty()) say("launch", launch(gpu, function, stream));
  say("synchronise", cu.cuStreamSynchronize(stream));
  say("alloc", cu.cuMemAlloc_v2(&more, kFaultBytes));
  std::size_t free_bytes = 0, total = 0;
  say("info", cu.cuMemGetInfo_v2(&free_bytes, &total));
  return 0;
}

// Allocates pieces of 16 MiB until there is no room.
int fill(Arguments) {
  const Gpu gpu;
  const Driver& cu = gpu.cu;
  constexpr std::size_t kPiece = std::size_t{16} << 20;
  std::vector<CUdeviceptr> pieces(1);
  while (cu.cuMemAlloc_v2(&pieces.back(), kPiece) == CUDA_SUCCESS) pieces.emplace_back();
  pieces.pop_back();
  CUdeviceptr more = 0;
  say("more", cu.cuMemAlloc_v2(&more, kPiece));
  need(cu.cuMemFree_v2(pieces.back()), "cuMemFree");
  std::size_t free_bytes = 0, total = 0;
  need(cu.cuMemGetInfo_v2(&free_bytes, &total), "cuMemGetInfo");
  say("one freed", cu.cuMemAlloc_v2(&more, kPiece));
  std::printf("%zu pieces, %zu MiB free of %zu\n", pieces.size(), free_bytes >> 20, total >> 20);
  return 0;
}

int hang(Arguments) {
  const Gpu gpu;
  const Driver& cu = gpu.cu;
  const CUstream stream = gpu.stream(), other = gpu.stream();
  const CUevent event = gpu.event();
  say("launch", launch(gpu, gpu.function("millrace_reconstruct"), stream));
  need(cu.cuEventRecord(event, stream), "cuEventRecord");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  say("event", cu.cuEventQuery(event));
  say("other stream", cu.cuStreamSynchronize(other));
  say("destroy", cu.cuStreamDestroy_v2(stream));
  return 0;
}

// Says that it is there, then what every call answers once it is no success.
int until_lost(Arguments) {
  const Gpu gpu;
  const CUstream stream = gpu.stream();
  CUresult result = CUDA_SUCCESS;
  for (bool said = false; result == CUDA_SUCCESS; said = true) {
    result = gpu.cu.cuStreamSynchronize(stream);
    if (!said) say("well", result);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  say("lost", result);
  std::size_t free_bytes = 0, total = 0;
  say("info", gpu.cu.cuMemGetInfo_v2(&free_bytes, &total));
  return 0;
}

// A wait for what never comes, which a lost device ends.
int wait_until_lost(Arguments) {
  const Gpu gpu;
  const CUstream stream = gpu.stream();
  const CUevent event = gpu.event();
  Gate gate(gpu);
  gate.hold(stream);
  need(gpu.cu.cuEventRecord(event, stream), "cuEventRecord");
  std::printf("well\n");
  std::fflush(stdout);
  say("lost", gpu.cu.cuEventSynchronize(event));
  return 0;
}

// A copy there and one back, how long the first one took at least, and how much of it came back.
int copy_slowly(Arguments) {
  const Gpu gpu;
  const Driver& cu = gpu.cu;
  const CUstream stream = gpu.stream();
  const CUdeviceptr memory = gpu.memory(kFaultBytes);
  Pinned<unsigned char> there(gpu, kFaultBytes), back(gpu, kFaultBytes);
  std::fill(there.values().begin(), there.values().end(), static_cast<unsigned char>(7));
  const auto begun = std::chrono::steady_clock::now();
  need(cu.cuMemcpyHtoDAsync_v2(memory, there.data(), kFaultBytes, stream), "cuMemcpyHtoDAsync");
  gpu.synchronise(stream);
  const auto took = std::chrono::steady_clock::now() - begun;
  if (took >= std::chrono::milliseconds(200)) std::printf("after 200 ms or more\n");
  need(cu.cuMemcpyDtoHAsync_v2(back.data(), memory, kFaultBytes, stream), "cuMemcpyDtoHAsync");
  gpu.synchronise(stream);
  std::printf("%td bytes\n", std::count(back.values().begin(), back.values().end(), static_cast<unsigned char>(7)));
  return 0;
}

template <class Function>
Function* nvml_function(const char* name) {
  static void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  void* const found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) need(CUDA_ERROR_NOT_FOUND, name);
  return reinterpret_cast<Function*>(found);
}

int nvml(Arguments) {
  need(nvml_function<int()>("nvmlInit_v2")(), "nvmlInit");
  void* device = nullptr;
  need(nvml_function<int(const char*, void**)>("nvmlDeviceGetHandleByUUID")(sim::uuid_text(0).c_str(), &device),
       "nvmlDeviceGetHandleByUUID");
  char name[96];
  unsigned milliwatt = 0, celsius = 0, rates[2] = {};
  unsigned long long memory[3] = {};  // total, free, used
  say("name", nvml_function<int(void*, char*, unsigned)>("nvmlDeviceGetName")(device, name, sizeof(name)));
  nvml_function<int(void*, unsigned*)>("nvmlDeviceGetPowerUsage")(device, &milliwatt);
  nvml_function<int(void*, int, unsigned*)>("nvmlDeviceGetTemperature")(device, 0, &celsius);
  nvml_function<int(void*, unsigned*)>("nvmlDeviceGetUtilizationRates")(device, rates);
  nvml_function<int(void*, unsigned long long*)>("nvmlDeviceGetMemoryInfo")(device, memory);
  std::printf("%u mW, %u C, %u %%, %llu MiB used of %llu\n", milliwatt, celsius, rates[0], memory[2] >> 20,
              memory[0] >> 20);
  return 0;
}

constexpr Scene kFaultScenes[] = {
    {"load", load},
    {"init", init},
    {"steps", steps},
    {"fill", fill},
    {"hang", hang},
    {"until lost", until_lost},
    {"wait until lost", wait_until_lost},
    {"nvml", nvml},
    {"copy slowly", copy_slowly},
};

}  // namespace

std::span<const Scene> fault_scenes() {
  return kFaultScenes;
}

}  // namespace millrace::cuda_scenes
