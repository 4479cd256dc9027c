#include "daemon/backend/cuda/worker/kernel_image.h"

#include <cstdint>

#if defined(MILLRACE_HAS_KERNEL_IMAGE)

// Of kernel_image.S.
extern "C" {
extern const std::byte millrace_kernel_image[] __attribute__((visibility("hidden")));
extern const std::uint64_t millrace_kernel_image_bytes __attribute__((visibility("hidden")));
}

namespace millrace::cuda {

std::span<const std::byte> kernel_image() {
  return {millrace_kernel_image, millrace_kernel_image_bytes};
}

}  // namespace millrace::cuda

#else

namespace millrace::cuda {

std::span<const std::byte> kernel_image() {
  return {};
}

}  // namespace millrace::cuda

#endif
