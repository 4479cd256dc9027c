// All shapes as a search for the cheapest wants them, several at a time. Internal to kernels/packed. Immutable.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/packed/shape_chooser.h"
#include "kernels/packed/shapes.h"

namespace millrace::kernels::packed {

struct Candidates {
  alignas(64) std::array<std::uint64_t, 256> widths;  // a byte a lane, kWideWidth for 12 bits
  alignas(64) std::array<std::uint64_t, 256> costs;   // a byte a lane: bits of a value
  alignas(64) std::array<std::uint64_t, 256> base;    // bits beside the values, above the shape's id
  std::array<int, 9> first;                           // the first one that has so many bytes of bitmap
};
extern const Candidates kCandidates;

// Costs more than any that holds the block. All of a search's numbers are below 2^31.
inline constexpr std::uint32_t kRawCost = 1U << 30 | kRawShape;

// How many values each lane has, a byte each.
inline std::uint64_t values_in_lanes(unsigned values) {
  const std::uint64_t full = 0x0808080808080808;
  const unsigned lanes = values / 8;
  if (lanes >= kLanes) return full;
  return (full & ((std::uint64_t{1} << (8 * lanes)) - 1)) | std::uint64_t{values & 7} << (8 * lanes);
}

// A nibble a lane to a byte a lane.
inline std::uint64_t a_byte_each(std::uint32_t nibbles) {
  std::uint64_t spread = nibbles;
  spread = (spread | spread << 16) & 0x0000FFFF0000FFFF;
  spread = (spread | spread << 8) & 0x00FF00FF00FF00FF;
  return (spread | spread << 4) & 0x0F0F0F0F0F0F0F0F;
}

}  // namespace millrace::kernels::packed
