// Pieces of a scan whose beginnings are known, decoded independently of each other, without speculation: by two bit
// streams in turns, or by the lanes of vectors. Internal to kernels/cpu/jpeg.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/jpeg/entropy/entropy_lanes.h"

namespace millrace::kernels::jpeg {

// kTurns: two bit streams in turns. kVectors: a lane each; REQUIRES AVX-512 as Target::kAvx512Bw means it.
enum class SegmentPath : std::uint8_t { kTurns, kVectors };

// The tables of a segment's blocks, one after the other, up to a gate. Thread-bound(its owner).
class SegmentTables {
 public:
  // For segments of up to `mcus`. `mcu`: the blocks of one, which must stay.
  void build(std::span<const McuBlock> mcu, int mcus);

  std::size_t blocks_in_mcu() const { return blocks_in_mcu_; }
  // The first block of a segment of so many blocks.
  const McuBlock& first(int blocks) const { return chain_[chain_.size() - static_cast<std::size_t>(blocks)]; }

 private:
  std::vector<McuBlock> chain_;
  std::size_t blocks_in_mcu_ = 0;
};

// Blocks as ScanDecoder gives them. REQUIRES: segments of whole MCUs, whose `first` is that of the circle that `tables`
// were built of; lane_reach() initialised bytes from each segment's beginning.
void decode_segments(SegmentPath path, const EntropyKernels& kernels, const std::uint8_t* data,
                     const SegmentTables& tables, std::span<LaneSegment> segments);

}  // namespace millrace::kernels::jpeg
