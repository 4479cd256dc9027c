// How many images a compute unit works on, and what each has room for: for the kernels, and for who plans for them. C++14.
// Immutable.
#pragma once

#include <cstdint>

namespace millrace {
namespace hls {

constexpr int kLanes = 4;  // of a compute unit
constexpr int kSlots = 2;  // images that take turns in a lane

// What a slot's memories hold. An image that needs more is not made here.
constexpr std::uint32_t kRingPixels = 65536;  // rows between the two filters: taps x the width of such a row
constexpr std::uint32_t kAxisWords = 32768;   // the column table, outputs x (taps + 1): enough for six lobes

}  // namespace hls
}  // namespace millrace
