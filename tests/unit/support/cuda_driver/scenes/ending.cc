// Calls when main() has returned.
#include <cstdio>
#include <cstdlib>

#include "tests/unit/support/cuda_driver/scenes/scenes.h"

namespace millrace::cuda_scenes {
namespace {

const Gpu* used_to_the_end = nullptr;
CUdeviceptr memory_to_the_end = 0;
CUstream stream_to_the_end = nullptr;

void call_late() {
  const Driver& cu = used_to_the_end->cu;
  say("cuInit", cu.cuInit(0));
  say("cuMemFree", cu.cuMemFree_v2(memory_to_the_end));
  say("cuStreamSynchronize", cu.cuStreamSynchronize(stream_to_the_end));
  say("cuDevicePrimaryCtxRelease", cu.cuDevicePrimaryCtxRelease_v2(used_to_the_end->device));
}

struct CallsLate {
  ~CallsLate() {
    std::printf("static destructor\n");
    call_late();
  }
};

// By what was there before the driver was loaded, and so ends after it.
int call_at_the_end(Arguments) {
  static const CallsLate calls_late;
  std::atexit([] {
    std::printf("atexit\n");
    call_late();
  });
  static const Gpu gpu;
  used_to_the_end = &gpu;
  memory_to_the_end = gpu.memory(1);
  stream_to_the_end = gpu.stream();
  return 0;
}

constexpr Scene kEndingScenes[] = {{"call at the end", call_at_the_end}};

}  // namespace

std::span<const Scene> ending_scenes() {
  return kEndingScenes;
}

}  // namespace millrace::cuda_scenes
