// Entry points: modules, functions, launches.
#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/support/cuda_driver/api/entry.h"
#include "tests/support/cuda_driver/api/image.h"
#include "tests/support/cuda_driver/settings.h"

namespace millrace::cuda {
namespace {

constexpr int kMostThreads = 1024;

// Of a multiprocessor of sm_90, whatever the device says that it is. Registers are given to warps, by each of four parts
// for its own.
constexpr int kMostBlocks = 32, kMostWarps = 64, kThreadsOfWarp = 32;
constexpr std::size_t kParts = 4, kRegistersOfPart = 65'536 / kParts, kRegistersTogether = 256;
constexpr std::size_t kSharedMemory = 228U << 10, kSharedTogether = 128, kReservedInBlock = 1024;

// How many thread blocks fit a multiprocessor; 0: not even one.
int blocks_together(const sim::HostKernel& kernel, int threads, std::size_t shared) {
  const std::size_t of_block = kernel.static_shared + shared;
  if (threads > kMostThreads || of_block > sim::kMostSharedMemory) return 0;
  const int warps = (threads + kThreadsOfWarp - 1) / kThreadsOfWarp;
  const std::size_t registers = sim::rounded_up(kernel.registers * kThreadsOfWarp, kRegistersTogether);
  const std::size_t by_registers = kRegistersOfPart / registers * kParts / static_cast<std::size_t>(warps);
  const std::size_t by_shared = kSharedMemory / (sim::rounded_up(of_block, kSharedTogether) + kReservedInBlock);
  return std::min({kMostBlocks, kMostWarps / warps, static_cast<int>(by_registers), static_cast<int>(by_shared)});
}

// All that the pointers in a kernel's parameter lead to.
std::vector<sim::Span> memory_of(std::span<const std::byte> parameter) {
  std::vector<sim::Span> found;
  for (std::size_t i = 0; i + sizeof(CUdeviceptr) <= parameter.size(); i += sizeof(CUdeviceptr)) {
    CUdeviceptr word = 0;
    std::memcpy(&word, parameter.data() + i, sizeof(word));
    sim::Span range;
    if (sim::Memory::get().range_of(word, range.at, range.size)) found.push_back(range);
  }
  return found;
}

}  // namespace

MILLRACE_EXPORT cuModuleLoadData(CUmodule* module, const void* image) {
  MILLRACE_RETURN_IF_FAILED(sim::enter_unsafe());
  MILLRACE_RETURN_IF_FAILED(sim::check_image(image));
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
  const bool is_allowed = shared <= static_cast<std::size_t>(found->dynamic_shared);
  *blocks = is_allowed ? blocks_together(found->kernel, threads, shared) : 0;
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
  if (blocks_together(found->kernel, static_cast<int>(threads_x), shared) == 0)
    return sim::refuse("a launch of which no block fits a multiprocessor", kLaunchOutOfResources);
  static std::atomic<std::uint32_t> launches{sim::settings().seed};
  const sim::Launch launch{static_cast<int>(x), static_cast<int>(threads_x), shared, ++launches};
  const auto* const first = static_cast<const std::byte*>(parameters[0]);  // copied now, as the driver does
  std::vector<std::byte> parameter(first, first + found->kernel.parameter_bytes);
  std::vector<sim::Span> uses = memory_of(parameter);
  const auto run = [kernel = &found->kernel, launch, parameter = std::move(parameter)]() -> CUresult {
    kernel->run(launch, parameter);
    return CUDA_SUCCESS;
  };
  return sim::submit(
      *stream, {.engine = sim::EngineKind::kCompute, .what = found->kernel.name, .uses = std::move(uses), .run = run});
}

}  // namespace millrace::cuda
