// 256 colours, a byte each of red, green and blue; those that a file does not give are black. Values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace::kernels::raster {

using Palette = std::array<std::uint8_t, std::size_t{3} * 256>;

// A grey of each level.
inline constexpr Palette kGreys = [] {
  Palette greys{};
  for (std::size_t i = 0; i < greys.size(); ++i) greys[i] = static_cast<std::uint8_t>(i / 3);
  return greys;
}();

}  // namespace millrace::kernels::raster
