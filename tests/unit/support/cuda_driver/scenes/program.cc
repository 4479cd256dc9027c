// millrace_cuda_driver_scenes SCENE [ARGUMENT...]: see scenes.h.
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "tests/unit/support/cuda_driver/scenes/scenes.h"

namespace millrace::cuda_scenes {

void need(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  std::printf("%s: %d\n", call, result);
  std::fflush(stdout);
  std::_Exit(3);
}

void say(const char* what, CUresult result) {
  std::printf("%s: %d\n", what, result);
  std::fflush(stdout);
}

const Driver& Gpu::load() {
  const Result<const Driver*> driver = Driver::load();
  if (driver) return **driver;
  std::printf("%s\n", driver.error().message.c_str());
  std::fflush(stdout);
  std::_Exit(4);
}

Gpu::Gpu() : cu(load()) {
  need(cu.cuDeviceGet(&device, 0), "cuDeviceGet");
  need(cu.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  need(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

CUstream Gpu::stream() const {
  CUstream made = nullptr;
  need(cu.cuStreamCreateWithPriority(&made, CU_STREAM_NON_BLOCKING, 0), "cuStreamCreateWithPriority");
  return made;
}

CUevent Gpu::event() const {
  CUevent made = nullptr;
  need(cu.cuEventCreate(&made, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  return made;
}

CUdeviceptr Gpu::memory(std::size_t bytes) const {
  CUdeviceptr at = 0;
  need(cu.cuMemAlloc_v2(&at, bytes), "cuMemAlloc");
  return at;
}

CUfunction Gpu::function(const char* name) const {
  CUmodule module = nullptr;
  CUfunction found = nullptr;
  need(cu.cuModuleLoadData(&module, "millrace simulated image"), "cuModuleLoadData");
  need(cu.cuModuleGetFunction(&found, module, name), "cuModuleGetFunction");
  return found;
}

void Gate::hold(CUstream stream) {
  CUdeviceptr word = 0;
  need(gpu_.cu.cuMemHostGetDevicePointer_v2(&word, word_.data(), 0), "cuMemHostGetDevicePointer");
  need(gpu_.cu.cuStreamWaitValue64_v2(stream, word, 1, CU_STREAM_WAIT_VALUE_GEQ), "cuStreamWaitValue64");
}

void Gate::open() {
  std::atomic_ref(word_[0]).store(1, std::memory_order_release);
}

}  // namespace millrace::cuda_scenes

int main(int argc, char** argv) {
  using namespace millrace::cuda_scenes;
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  for (const auto scenes :
       {call_scenes(), device_scenes(), ending_scenes(), capture_scenes(), image_scenes(), launch_scenes(),
        registering_scenes(), memory_scenes(), fault_scenes(), sharing_scenes(), batch_scenes()})
    for (const Scene& scene : scenes)
      if (!arguments.empty() && scene.name == arguments[0]) return scene.run(Arguments(arguments).subspan(1));
  std::fprintf(stderr, "no such scene\n");
  return 2;
}
