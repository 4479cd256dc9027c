// Tensors of the GPU beside those of a checksum file.
#pragma once

#include "daemon/backend/cuda/worker/batch_launch.h"
#include "tests/bench/cuda/checksum_file.h"
#include "tests/bench/cuda/image_files.h"

namespace millrace::kernels::cuda::bench {

using millrace::cuda::Kernels;

struct CheckCounts {
  std::size_t equal = 0;
  std::size_t left = 0;   // refused before launch, or not done: for the CPU
  std::size_t wrong = 0;  // done with other bytes, or though the CPU refuses
  std::size_t not_in_time = 0;
};

// Every line whose file is there. Prints each that is wrong, and how often each reason was given for those left.
// `packed`: packed forms, by their files' paths; every second line takes the one that there is in its file's place, so
// that batches are mixed.
CheckCounts check(const std::vector<ChecksumLine>& lines, const std::vector<ImageFile>& files,
                  const std::vector<ImageFile>& packed, const Kernels& kernels);

}  // namespace millrace::kernels::cuda::bench
