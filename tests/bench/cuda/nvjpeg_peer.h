// nvJPEG with what a user adds to it for training: batches decoded to RGB, then crop, antialiased resize, flip and
// normalisation by a kernel of a few lines.
#pragma once

#include "tests/bench/cuda/figures.h"
#include "tests/bench/cuda/nvjpeg_library.h"

namespace millrace::kernels::cuda::bench {

// Images a second, the best of a few numbers of streams; 0, and a line that says why, where the back end is not there.
double nvjpeg_figure(const NvjpegLibrary& nvjpeg, NvjpegBackend backend, const ImagePool& pool,
                     const BenchSettings& settings);

}  // namespace millrace::kernels::cuda::bench
