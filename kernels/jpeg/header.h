// The markers of a JPEG file up to its first scan's data, for the kind of file that our decoders are for: 8-bit
// baseline or extended sequential Huffman coding, one scan, grey or YCbCr with the chroma at full or half size.
//
// The bytes are hostile. Whatever is odd about them is refused, damaged or not: libjpeg-turbo then finds out which.
// So a header that is read here is one that libjpeg-turbo reads without a warning, and sees as the same picture.
// Values; thread-safe: plain functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "kernels/base/image_view.h"

namespace millrace::kernels::jpeg {

using FileBytes = std::span<const std::uint8_t>;

inline constexpr int kBlock = 8;          // samples along a block's side
inline constexpr int kCoefficients = 64;  // in a block
inline constexpr int kMostTables = 4;     // of a kind
inline constexpr int kMostBlocks = 6;     // in an MCU of the samplings below

// Position in zig-zag order to position in natural order (T.81 figure A.6).
inline constexpr std::array<std::uint8_t, kCoefficients> kNatural = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

// A DHT table as the file has it: how many codes of 1..16 bits there are, and their symbols. Unused symbols are 0.
struct HuffmanSpec {
  std::array<std::uint8_t, 16> counts{};
  std::array<std::uint8_t, 256> symbols{};
  friend bool operator==(const HuffmanSpec&, const HuffmanSpec&) = default;
};

struct Component {
  std::uint8_t id = 0;
  std::uint8_t h = 1, v = 1;               // blocks of an MCU
  std::uint8_t quant = 0, dc = 0, ac = 0;  // which tables
};

struct Header {
  Size size;
  int components = 0;  // 1: grey; 3: Y, Cb, Cr, of which only Y may have h or v = 2
  std::array<Component, 3> component;
  std::array<std::optional<std::array<std::uint16_t, kCoefficients>>, kMostTables> quant;  // natural order, none 0
  std::array<std::optional<HuffmanSpec>, kMostTables> dc, ac;
  int restart_interval = 0;  // MCUs; 0: there are no restarts
  FileBytes scan;            // from the scan's data to the end of the file
};

// How much less chroma than luma a reader provides for: half as much across and down, or also a quarter across (4:1:1).
enum class Chroma : std::uint8_t { kHalf, kQuarter };

// nullopt: not for our decoders. Costs the header's bytes only. Every table that a component names is there.
std::optional<Header> read_header(FileBytes file_untrusted, Chroma least = Chroma::kHalf);

}  // namespace millrace::kernels::jpeg
