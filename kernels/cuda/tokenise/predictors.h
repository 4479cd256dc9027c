// DC predictors of an image's components, modulo 2^32: named, for an array that is looked up would not be in registers.
#pragma once

#include <cstdint>

#include "kernels/cuda/batch.h"
#include "kernels/cuda/host_device.h"

namespace millrace::kernels::cuda {

// Whether a block's level leaves 16 bits. Libjpeg-turbo has to judge such an image, wherever the block lies.
MILLRACE_HD constexpr bool is_beyond(std::uint32_t level) {
  return level + INT16_MAX > 2U * INT16_MAX;
}

struct Predictors {
  std::uint32_t first, second, third;

  // A component's, afterwards.
  MILLRACE_HD std::uint32_t add(int component, int difference) {
    const auto added = static_cast<std::uint32_t>(difference);
    if (component == 0) return first += added;
    if (component == 1) return second += added;
    return third += added;
  }
};
static_assert(kMostComponents == 3);

}  // namespace millrace::kernels::cuda
