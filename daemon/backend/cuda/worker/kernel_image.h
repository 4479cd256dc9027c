// The GPU kernels of this build: a fat binary as cuModuleLoadData() takes it, in the program's read-only data.
// Immutable.
#pragma once

#include <cstddef>
#include <span>

namespace millrace::cuda {

// Aligned to 64 bytes. Empty where the build had no CUDA compiler.
std::span<const std::byte> kernel_image();

}  // namespace millrace::cuda
