#include "kernels/cuda/tokenise.h"

#include "kernels/cuda/device_block.h"
#include "kernels/cuda/device_kernels.h"

namespace millrace::kernels::cuda {
namespace {

static_assert(is_possible(TokeniseShape{}, kTokeniseThreads));

__global__ void __launch_bounds__(kTokeniseThreads, kTokeniseBlocks)
    tokenise_kernel(const __grid_constant__ TokeniseArgs args) {
  __shared__ DeviceBlock::Scratch scratch;
  DeviceBlock block(scratch);
  tokenise(block, args);
}

}  // namespace

CudaStatus prepare_tokenise(int& blocks_at_once) {
  constexpr int kShared = sizeof(TokeniseShared);
  MILLRACE_RETURN_IF_CUDA_FAILED(
      cudaFuncSetAttribute(tokenise_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared));
  return checked(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_at_once, tokenise_kernel, kTokeniseThreads, kShared),
      "cudaOccupancyMaxActiveBlocksPerMultiprocessor(tokenise)");
}

CudaStatus launch_tokenise(const TokeniseArgs& args, int blocks, cudaStream_t stream) {
  TokeniseArgs given = args;
  void* arguments[] = {&given};
  return checked(cudaLaunchKernel(reinterpret_cast<const void*>(&tokenise_kernel), dim3(static_cast<unsigned>(blocks)),
                                  dim3(kTokeniseThreads), arguments, sizeof(TokeniseShared), stream),
                 "cudaLaunchKernel(tokenise)");
}

}  // namespace millrace::kernels::cuda
