// One component's 8-bit samples, of which only some columns and the last rows may be in memory. Value.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::kernels {

struct SamplePlane {
  const std::uint8_t* samples = nullptr;  // column `first_column` of row 0, or of the row that has taken its place
  std::ptrdiff_t stride = 0;
  int first_column = 0;
  unsigned row_mask = ~0U;  // row y lies where y & row_mask says

  const std::uint8_t* at(int x, int y) const {
    return samples + static_cast<std::ptrdiff_t>(static_cast<unsigned>(y) & row_mask) * stride + (x - first_column);
  }
};

}  // namespace millrace::kernels
