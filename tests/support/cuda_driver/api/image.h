// What a module's image has code for, by the headers of its fat binary:
//
//   16 bytes   magic, version 1, size of this header (16 bits each), bytes of all that follows
//   an entry   kind, version 1.1, size of this header (32 bits), bytes behind it, ..., its version (at 24: minor, major),
//              the architecture (at 28: 90 for sm_90), ..., and then the code itself, compressed or not
//
// `fatbinary` of CUDA 13.0 writes it so. Thread-safe.
#pragma once

#include "proto/cuda/driver_api.h"

namespace millrace::sim {

// CUDA_SUCCESS: the driver takes it, for the simulated device. It has no size of its own: the headers are believed.
cuda::CUresult check_image(const void* image);

}  // namespace millrace::sim
