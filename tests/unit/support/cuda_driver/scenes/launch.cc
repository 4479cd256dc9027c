// How many thread blocks a multiprocessor has room for, and a launch of which it has none.
#include <cstdio>

#include "kernels/cuda/reconstruct/reconstruct.h"
#include "kernels/cuda/tokenise/tokenise.h"
#include "kernels/cuda/unpack/unpack.h"
#include "tests/unit/support/cuda_driver/scenes/scenes.h"

namespace millrace::cuda_scenes {
namespace {

constexpr int kRoomOfAll = 227 << 10;

CUfunction function_with_room(const Gpu& gpu, const char* name) {
  const CUfunction function = gpu.function(name);
  need(gpu.cu.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kRoomOfAll),
       "cuFuncSetAttribute");
  return function;
}

int occupancy(Arguments) {
  const Gpu gpu;
  const auto count = [&](CUfunction function, const char* what, int threads, std::size_t shared) {
    int blocks = -1;
    need(gpu.cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, threads, shared), "cuOccupancy");
    std::printf("%s: %d\n", what, blocks);
  };
  const CUfunction tokenise = function_with_room(gpu, "millrace_tokenise"),
                   unpack = function_with_room(gpu, "millrace_unpack"),
                   reconstruct = function_with_room(gpu, "millrace_reconstruct");
  count(tokenise, "tokenise", kernels::cuda::kTokeniseThreads, sizeof(kernels::cuda::TokeniseShared));
  count(unpack, "unpack", kernels::cuda::kUnpackThreads, sizeof(kernels::cuda::UnpackShared));
  count(reconstruct, "reconstruct", kernels::cuda::kTileThreads, kernels::cuda::kTileBytes);
  count(tokenise, "by 72 registers", 128, 20'000);
  count(unpack, "by 36 registers", 64, 0);
  count(reconstruct, "by 64 registers", 100, 0);
  count(tokenise, "by 47,000 bytes", 128, 47'000);
  count(unpack, "by 12,000 bytes", 32, 12'000);
  count(reconstruct, "by all of a block's bytes", 32, kRoomOfAll);
  count(tokenise, "with 128 more of its own", 32, kRoomOfAll);
  count(tokenise, "of 1,024 threads", 1024, 0);
  count(unpack, "of 1,024 threads with fewer registers", 1024, 0);
  count(unpack, "of 1,025 threads", 1025, 0);
  count(gpu.function("millrace_unpack"), "with more bytes than the function may have", 32, (48 << 10) + 1);
  return 0;
}

int launch_too_large(Arguments) {
  const Gpu gpu;
  const CUstream stream = gpu.stream();
  std::byte parameter[1024] = {};
  void* parameters[] = {parameter};
  say("launch",
      gpu.cu.cuLaunchKernel(gpu.function("millrace_tokenise"), 1, 1, 1, 1024, 1, 1, 0, stream, parameters, nullptr));
  say("synchronise", gpu.cu.cuStreamSynchronize(stream));
  return 0;
}

constexpr Scene kLaunchScenes[] = {{"occupancy", occupancy}, {"launch too large", launch_too_large}};

}  // namespace

std::span<const Scene> launch_scenes() {
  return kLaunchScenes;
}

}  // namespace millrace::cuda_scenes
