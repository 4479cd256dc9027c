// Where the fields of version 2's head are (README.md, "Head"). Internal to kernels/l3. Immutable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace::kernels::l3::field {

inline constexpr std::array<std::uint8_t, 4> kMagicIs{'M', 'R', 'L', '3'};
inline constexpr std::uint8_t kVersionIs = 2, kSideIs = 5;
inline constexpr std::size_t kVersion = 4, kChannels = 5, kDepth = 6, kOrientation = 7, kWidth = 8, kHeight = 12,
                             kColours = 16, kColourBytes = 18, kSide = 19, kZero = 20, kExifBytes = 24, kIccBytes = 28,
                             kXmpBytes = 32, kZeroToo = 36, kDataBytes = 40, kDataChecksum = 48, kHeadChecksum = 56;

}  // namespace millrace::kernels::l3::field
