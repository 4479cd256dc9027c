// The weights of one side, packed the way one target reads them. Internal to kernels/cpu; built by RowKernels, kept by
// Workspace. Immutable once packed.
//
// Along columns taps are handled four at a time, a block: four neighbouring pixels of a row. Along rows they are
// handled in pairs, two source rows counted from `origin`, and computed in quads, two pairs at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/base/target.h"
#include "kernels/tensor/axis_weights.h"

namespace millrace::kernels {

// One cache line, so that vectors of them are aligned.
struct alignas(64) Line {
  std::uint8_t bytes[64] = {};
};

struct AxisTable {
  AxisSpec spec;
  AxisWeights weights;
  int origin = 0;  // rows: the source row where pairs and quads begin
  int quads = 1;   // rows: the most quads that an output row meets
  // Rows: the most pairs that an output row uses. Columns: pairs of taps beside the blocks; pixel by pixel, all.
  int pairs = 1;
  int blocks = 1;       // columns: blocks of four taps an output (or an output group) uses
  bool clamps = false;  // sums may leave 0..255, because weights are negative
  // Columns: whose kernel runs them. A target hands over what does not suit it: pictures narrower than its loads, very
  // steep shrinking.
  Target packed_for = Target::kScalar;
  int windows = 0;           // columns of kAvx2 and kAvx512Bw: windows a vector (rows/row_windows.h); 0: pixel by pixel
  bool upper_bytes = false;  // with windows: upper parts of weights are bytes

  struct Step {
    std::int32_t source;  // byte offset into the row
    std::int32_t output;  // kAvx512: the first output sample of the group
  };
  std::vector<Step> steps;  // columns
  struct RowStep {
    std::int32_t pair;   // the first; never falls
    std::int32_t count;  // of pairs, as many as have weights
  };
  std::vector<RowStep> row_steps;
  int plain_steps = 0;  // columns: the steps before this one may load whole vectors without leaving the row
  std::vector<Line> lines;

  // All lines as one stretch of bytes.
  const std::uint8_t* packed_bytes() const { return reinterpret_cast<const std::uint8_t*>(lines.data()); }
  std::uint8_t* packed_bytes() { return reinterpret_cast<std::uint8_t*>(lines.data()); }
  std::size_t size_in_bytes() const {
    return (weights.start.size() + weights.weight.size()) * sizeof(std::int32_t) + steps.size() * sizeof(Step) +
           row_steps.size() * sizeof(RowStep) + lines.size() * sizeof(Line);
  }
};

}  // namespace millrace::kernels
