#include "kernels/cuda/reconstruct.h"

#include "kernels/cuda/device_block.h"
#include "kernels/cuda/device_kernels.h"

namespace millrace::kernels::cuda {
namespace {

// Registers for four blocks on a multiprocessor, as their shared memory allows.
__global__ void __launch_bounds__(kTileThreads, 4) reconstruct_kernel(const __grid_constant__ ReconstructArgs args) {
  __shared__ DeviceBlock::Scratch scratch;
  DeviceBlock block(scratch);
  reconstruct_tile(block, args);
}

}  // namespace

CudaStatus prepare_reconstruct() {
  return checked(cudaFuncSetAttribute(reconstruct_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kTileBytes),
                 "cudaFuncSetAttribute(reconstruct)");
}

CudaStatus launch_reconstruct(const ReconstructArgs& args, int tiles, cudaStream_t stream) {
  ReconstructArgs given = args;
  void* arguments[] = {&given};
  return checked(
      cudaLaunchKernel(reinterpret_cast<const void*>(&reconstruct_kernel), dim3(static_cast<unsigned>(tiles)),
                       dim3(kTileThreads), arguments, kTileBytes, stream),
      "cudaLaunchKernel(reconstruct)");
}

}  // namespace millrace::kernels::cuda
