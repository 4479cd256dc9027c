// Memory that every codec library takes, whatever the format. The formats add it to their own.
#pragma once

#include <cstdint>

#include "proto/base/bytes.h"

namespace millrace {

inline constexpr Bytes kCodecFixed = 2_MiB;  // of any library: tables, structures, input buffers

constexpr std::uint64_t divide_up(std::uint64_t value, std::uint64_t by) {
  return (value + by - 1) / by;
}

}  // namespace millrace
