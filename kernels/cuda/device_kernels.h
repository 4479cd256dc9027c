// The kernels themselves, each to be set up once a device and then launched. For launch.cu, which knows what to give
// them.
#pragma once

#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/reconstruct_args.h"
#include "kernels/cuda/tokenise_args.h"

namespace millrace::kernels::cuda {

// Seven blocks of 32 KB run on a multiprocessor at once.
inline constexpr int kTokeniseThreads = kUsualTokeniseThreads;
inline constexpr int kTokeniseBlocks = 7;

// Thread blocks that run at once on a multiprocessor.
CudaStatus prepare_tokenise(int& blocks_at_once);
// On args.scratch for `blocks`, of which none is idle as long as images are left.
CudaStatus launch_tokenise(const TokeniseArgs& args, int blocks, cudaStream_t stream);

CudaStatus prepare_reconstruct();
CudaStatus launch_reconstruct(const ReconstructArgs& args, int tiles, cudaStream_t stream);

}  // namespace millrace::kernels::cuda
