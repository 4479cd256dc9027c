// A word of a card's memory bus: 512 bits, what a burst moves each clock. Value.
#pragma once

#include <cstdint>

namespace millrace {
namespace hls {

struct alignas(64) Burst {
  std::uint64_t part[8];
};

}  // namespace hls
}  // namespace millrace
