// The weights of one side, packed the way one target reads them. Internal to kernels/cpu; built by RowKernels, kept by
// Workspace. Immutable once packed.
//
// Taps are handled four at a time, a block. Along columns a block is four neighbouring pixels of a row; along rows it
// is a quad, four source rows counted from `origin`, and every output row uses the same number of quads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cpu/axis_weights.h"
#include "kernels/cpu/target.h"

namespace millrace::kernels {

// One cache line, so that vectors of them are aligned.
struct alignas(64) Line {
  std::uint8_t bytes[64] = {};
};

struct AxisTable {
  AxisSpec spec;
  AxisWeights weights;
  int origin = 0;  // rows: the source row where quads begin
  int blocks = 1;  // blocks of four taps an output (or an output group) uses
  // Columns: whose kernel runs them. A target hands over what does not suit it: pictures narrower than its loads, very
  // steep shrinking.
  Target packed_for = Target::kScalar;

  struct Step {
    std::int32_t source;  // columns: byte offset into the row; rows: first quad
    std::int32_t output;  // columns of kAvx512: the first output sample of the group
  };
  std::vector<Step> steps;
  int plain_steps = 0;  // columns: the steps before this one may load whole vectors without leaving the row
  std::vector<Line> lines;

  // All lines as one stretch of bytes.
  const std::uint8_t* packed_bytes() const { return reinterpret_cast<const std::uint8_t*>(lines.data()); }
  std::uint8_t* packed_bytes() { return reinterpret_cast<std::uint8_t*>(lines.data()); }
  std::size_t size_in_bytes() const {
    return (weights.start.size() + weights.weight.size()) * sizeof(std::int32_t) + steps.size() * sizeof(Step) +
           lines.size() * sizeof(Line);
  }
};

}  // namespace millrace::kernels
