// Entry points: modules, functions, launches.
#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/support/cuda_driver/api/entry.h"
#include "tests/support/cuda_driver/settings.h"

namespace millrace::cuda {
namespace {

constexpr std::uint32_t kFatBinaryMagic = 0xBA55ED50;
constexpr char kSimulatedImage[] = "millrace simulated image";
constexpr int kLeastCapability = 80;  // that the kernels are built for
constexpr std::size_t kMultiprocessorSharedMemory = 228U << 10, kReservedInBlock = 1024;
constexpr int kMultiprocessorThreads = 2048, kMostThreads = 1024;

bool is_image(const void* data) {
  std::uint32_t magic = 0;
  std::memcpy(&magic, data, sizeof(magic));
  return magic == kFatBinaryMagic ||
         std::strncmp(static_cast<const char*>(data), kSimulatedImage, sizeof(kSimulatedImage) - 1) == 0;
}

}  // namespace

MILLRACE_EXPORT cuModuleLoadData(CUmodule* module, const void* image) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_context());
  if (!is_image(image)) return CUDA_ERROR_INVALID_IMAGE;
  if (sim::settings().capability < kLeastCapability) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  *module = sim::objects().modules.add(std::shared_ptr<Module>(new Module{*sim::current_context()}));
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuModuleUnload(CUmodule module) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_context());
  if (sim::objects().modules.remove(module) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  sim::objects().functions.remove_if([&](const Function& function) { return function.module == module; });
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_context());
  const auto found = sim::objects().modules.find(module);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const sim::HostKernel* const kernel = sim::find_kernel(name);
  if (kernel == nullptr) return CUDA_ERROR_NOT_FOUND;
  *function = sim::objects().functions.add(std::shared_ptr<Function>(new Function{found->context, module, *kernel}));
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuFuncSetAttribute(CUfunction function, int attribute, int value) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_context());
  const auto found = sim::objects().functions.find(function);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 || value > sim::kMostSharedMemory)
    return CUDA_ERROR_INVALID_VALUE;
  found->dynamic_shared = value;
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                            std::size_t shared) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_context());
  const auto found = sim::objects().functions.find(function);
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t taken = shared + found->kernel.static_shared + kReservedInBlock;
  const bool fits = shared <= static_cast<std::size_t>(found->dynamic_shared) && threads <= kMostThreads;
  *blocks =
      fits ? std::min(kMultiprocessorThreads / threads, static_cast<int>(kMultiprocessorSharedMemory / taken)) : 0;
  return CUDA_SUCCESS;
}

MILLRACE_EXPORT cuLaunchKernel(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned threads_x,
                               unsigned threads_y, unsigned threads_z, unsigned shared, CUstream to, void** parameters,
                               void** extra) {
  std::shared_ptr<Stream> stream;
  MILLRACE_RETURN_IF_FAILED(sim::enter_stream(to, stream));
  const auto found = sim::objects().functions.find(function);
  if (found == nullptr || &found->context != &stream->context()) return CUDA_ERROR_INVALID_HANDLE;
  if (x == 0 || threads_x == 0 || threads_x > kMostThreads || extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (y != 1 || z != 1 || threads_y != 1 || threads_z != 1)
    return sim::refuse("a launch of more than one dimension is not simulated", CUDA_ERROR_INVALID_VALUE);
  if (static_cast<int>(shared) > found->dynamic_shared)
    return sim::refuse("a launch with more shared memory than the function may have", CUDA_ERROR_INVALID_VALUE);
  static std::atomic<std::uint32_t> launches{sim::settings().seed};
  const sim::Launch launch{static_cast<int>(x), static_cast<int>(threads_x), shared, ++launches};
  const auto* const first = static_cast<const std::byte*>(parameters[0]);  // copied now, as the driver does
  std::vector<std::byte> parameter(first, first + found->kernel.parameter_bytes);
  const auto run = [kernel = &found->kernel, launch, parameter = std::move(parameter)]() -> CUresult {
    kernel->run(launch, parameter);
    return CUDA_SUCCESS;
  };
  return sim::submit(*stream, {.engine = sim::EngineKind::kCompute, .what = found->kernel.name, .run = run});
}

}  // namespace millrace::cuda
