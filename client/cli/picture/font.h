// A small pixel font for the contact sheet: printable ASCII. Immutable.
#pragma once

#include <array>
#include <cstdint>

namespace millrace::cli {

inline constexpr int kGlyphWidth = 5;
inline constexpr int kGlyphHeight = 9;  // capitals are 7 high; the last two rows are for descenders

using Glyph = std::array<std::uint8_t, kGlyphHeight>;  // rows from the top; the lowest five bits from left to right

const Glyph& glyph_of(char c);  // a box for what is not printable ASCII

}  // namespace millrace::cli
