// Undoes the filters of PNG rows (PNG 9), and drops alpha. A row at a time, from where it was inflated to where it is
// wanted.
//
// Thread-safe: pure functions. Every target gives the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/target.h"

namespace millrace::kernels::png {

enum class Filter : std::uint8_t { kNone, kSub, kUp, kAverage, kPaeth };
inline constexpr std::uint8_t kFilters = 5;

// Bytes that may be read behind inputs, whatever they are, and written behind outputs.
inline constexpr std::size_t kRowSlack = 32;

// A pixel has 1, 2, 3, 4, 6 or 8 bytes; where it has fewer bits than 8, it counts as one (PNG 9.2).
constexpr bool is_pixel_size(std::size_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 3 || bytes == 4 || bytes == 6 || bytes == 8;
}

// `count` bytes of a row behind its filter byte; `above`: the row above, undone, of zeros for the first one. `out` is
// neither of them. REQUIRES: is_pixel_size(pixel_bytes), count > 0 and a multiple of it.
using UnfilterRow = void (*)(const std::uint8_t* in, const std::uint8_t* above, std::size_t count, std::uint8_t* out);
UnfilterRow unfilter_row(Target target, Filter filter, std::size_t pixel_bytes);

// `count` pixels of four bytes to the first three of each; not in place.
using DropFourth = void (*)(const std::uint8_t* in, std::size_t count, std::uint8_t* out);
DropFourth drop_fourth(Target target);

}  // namespace millrace::kernels::png
