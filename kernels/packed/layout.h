// The layout of a packed image, for who reads and who writes it. README.md has the grammar. All numbers are
// little-endian. Internal to kernels/packed, and to
// who unpacks in a loop of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "kernels/jpeg/header.h"
#include "kernels/packed/packed_image.h"

namespace millrace::kernels::packed::layout {

inline constexpr std::uint32_t kMagic = 0x4B50524D;  // "MRPK"
inline constexpr std::uint8_t kVersion = 1;

// Where the head's fields are.
inline constexpr std::size_t kComponents = 5, kH = 6, kV = 7, kWidth = 8, kHeight = 10, kTableOf = 12, kTables = 15;
inline constexpr std::size_t kGroups = 16, kReserved = 20, kBytes = 24, kChecksum = 32, kHeadBytes = 40;

inline constexpr std::size_t kTableBytes = 2 * jpeg::kCoefficients;
inline constexpr std::size_t kSizeBytes = 2;

// Where the first group begins. Bitmaps are read backwards from a group's end, so much at most.
inline constexpr std::size_t kMostBitmapBytes = 8;  // of a block
inline constexpr std::size_t kLeastStart = kGroupBlocks * kMostBitmapBytes;
constexpr std::size_t groups_start(std::size_t tables, std::size_t groups) {
  return std::max(kLeastStart, kHeadBytes + kTableBytes * tables + kSizeBytes * groups);
}

// A group: DC level of its first block, widths of the differences that follow, a shape for each block, differences.
inline constexpr std::size_t kGroupHeadBytes = 4;
inline constexpr std::size_t kMostDcBytes = 3 * 15 + (7 * 15 + 7) / 8;
inline constexpr std::size_t kMostBeforeValues = kGroupHeadBytes + kGroupBlocks + kMostDcBytes;
// Values of a block: 63 of 16 bits from a byte on, whatever its shape is.
inline constexpr std::size_t kMostBlockBits = 63 * 16 + 7;
inline constexpr std::size_t kMostGroupBytes =
    kMostBeforeValues + (kGroupBlocks * kMostBlockBits + 7) / 8 + kGroupBlocks * kMostBitmapBytes;
static_assert(kMostGroupBytes <= UINT16_MAX);

// The last block's values begin so far in at most, and decoders load so many bytes from there on at most.
inline constexpr std::size_t kMostLoad = 128;
static_assert(kMostBeforeValues + ((kGroupBlocks - 1) * kMostBlockBits + 7) / 8 + kMostLoad <= kPadding);

// Bits of the DC differences of a group of `blocks`: eight by eight a nibble of `widths`.
inline std::size_t dc_bits(std::uint32_t widths, int blocks) {
  std::size_t bits = 0;
  for (int left = blocks - 1; left > 0; left -= 8, widths >>= 4)
    bits += (widths & 15) * static_cast<std::size_t>(std::min(left, 8));
  return bits;
}

// Where a group's parts begin; its bitmaps end where the group does, the first block's last.
struct Parts {
  const std::uint8_t* shapes;
  const std::uint8_t* differences;
  const std::uint8_t* values;
  std::int16_t level;       // of the first block
  std::uint16_t dc_widths;  // see dc_bits()
};
inline Parts parts_of(const Group& group) {
  Parts parts;
  std::memcpy(&parts.level, group.begin, sizeof parts.level);
  std::memcpy(&parts.dc_widths, group.begin + 2, sizeof parts.dc_widths);
  parts.shapes = group.begin + kGroupHeadBytes;
  parts.differences = parts.shapes + group.blocks;
  parts.values = parts.differences + (dc_bits(parts.dc_widths, group.blocks) + 7) / 8;
  return parts;
}

// Of everything but itself.
std::uint64_t checksum(std::span<const std::uint8_t> bytes);

// The kind of image that our decoders take: a size that libjpeg takes, grey, or chroma at full or half size.
bool is_our_kind(const jpeg::Header& header);

}  // namespace millrace::kernels::packed::layout
