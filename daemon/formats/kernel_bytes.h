// Untrusted bytes as the kernels speak of them. Pure function.
#pragma once

#include <cstdint>
#include <span>

#include "proto/base/bytes.h"

namespace millrace {

inline std::span<const std::uint8_t> in_kernels(ByteView bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}

}  // namespace millrace
