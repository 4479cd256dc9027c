// Entropy decoding of many pieces of a scan at once, a piece a lane of AVX-512 vectors: for places that a seek index or
// restart markers give. Look-ups are those of the other decoders, in the same tables. Internal to kernels/cpu/jpeg.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/cpu/jpeg/entropy/entropy.h"

namespace millrace::kernels::jpeg {

inline constexpr int kLanes = 16;
inline constexpr std::size_t kMostLaneBlocks = 8;  // of an MCU

struct LaneSegment {
  std::int64_t bit = 0;  // of the data: where the first block begins
  int blocks = 0;        // at least one
  const McuBlock* first = nullptr;
  char* out = nullptr;  // zeroed, aligned to kBlockBytes; bytes of one block more are written, as 0

  // Found out.
  std::int64_t end_bit = 0;  // after the last block
  bool bad = false;          // an impossible code or run
};

// Bytes from a segment's beginning on that decoding may read, whatever they are. T.81: a coefficient takes at most 16
// bits of code and 15 of value.
constexpr std::size_t lane_reach(int blocks) {
  return static_cast<std::size_t>(blocks + 1) * kCoefficients * 31 / 8 + 64;
}

#if defined(__x86_64__)
// Any number of segments; best with many more than kLanes or with equally long ones. REQUIRES: an MCU of at most
// kMostLaneBlocks, all segments' `first` in its circle; AVX-512 as Target::kAvx512Bw means it.
void decode_lanes_avx512(const std::uint8_t* data, std::span<LaneSegment> segments);
#endif

}  // namespace millrace::kernels::jpeg
