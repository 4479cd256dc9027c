// K1, unpacking, K2 and K3 as one GPU module. extern "C", so that the driver finds them by plain names; their launches (grid, shared
// memory, arguments) are the host's, by the driver API: nothing of the CUDA runtime is used here.
#include "kernels/cuda/augment/augment.h"
#include "kernels/cuda/device_block.h"
#include "kernels/cuda/reconstruct/reconstruct.h"
#include "kernels/cuda/tokenise/tokenise.h"
#include "kernels/cuda/unpack/unpack.h"

namespace millrace::kernels::cuda {

static_assert(is_possible(TokeniseShape{}, kTokeniseThreads));

// REQUIRES: kTokeniseThreads threads and sizeof(TokeniseShared) bytes of dynamic shared memory.
extern "C" __global__ void __launch_bounds__(kTokeniseThreads, kTokeniseBlocks)
    millrace_tokenise(const __grid_constant__ TokeniseArgs args) {
  __shared__ DeviceBlock::Scratch scratch;
  DeviceBlock block(scratch);
  tokenise(block, args);
}

// REQUIRES: kUnpackThreads threads and sizeof(UnpackShared) bytes of dynamic shared memory.
extern "C" __global__ void __launch_bounds__(kUnpackThreads, kUnpackBlocks)
    millrace_unpack(const __grid_constant__ UnpackArgs args) {
  __shared__ DeviceBlock::Scratch scratch;
  DeviceBlock block(scratch);
  unpack(block, args);
}

// REQUIRES: kTileThreads threads and kTileBytes bytes of dynamic shared memory. Registers for four blocks on a
// multiprocessor, as their shared memory allows.
extern "C" __global__ void __launch_bounds__(kTileThreads, 4)
    millrace_reconstruct(const __grid_constant__ ReconstructArgs args) {
  __shared__ DeviceBlock::Scratch scratch;
  DeviceBlock block(scratch);
  reconstruct_tile(block, args);
}

// REQUIRES: kAugmentThreads threads and sizeof(AugmentShared) bytes of dynamic shared memory.
extern "C" __global__ void __launch_bounds__(kAugmentThreads, kAugmentBlocks)
    millrace_augment(const __grid_constant__ AugmentArgs args) {
  __shared__ DeviceBlock::Scratch scratch;
  DeviceBlock block(scratch);
  augment(block, args);
}

}  // namespace millrace::kernels::cuda
