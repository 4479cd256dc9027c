// Huffman tables packed for decoding: an AC entry gives up to two symbols with their values, small enough that two AC
// and two DC tables (24 KiB) stay in a first-level cache. Values.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/cpu/jpeg/header.h"

namespace millrace::kernels::jpeg {

inline constexpr int kAcBits = 10;         // index of an AC table
inline constexpr int kDcBits = 9;          // index of a DC table
inline constexpr int kMostEntryBits = 18;  // that an AC entry may consume: three of them fit into one refill

// The canonical codes, for what the packed entries leave out. A code of `length` bits is below limit[length - 1] when
// both are aligned to 16 bits; symbol = symbols[offset[length] + code].
struct CanonicalCode {
  std::array<std::uint32_t, 16> limit;
  std::array<std::int32_t, 17> offset;
  std::array<std::uint8_t, 256> symbols;
};

// An AC entry, 8 bytes from the low one:
//   0  bits consumed (bits 0-5); bit 7: ends with EOB
//   1  bytes that the output advances by, 2 a coefficient; kLeave: EOB, or not in the table
//   2  offset in bytes of the first value
//   3  right shift of the bit buffer that leaves the index and, behind it, the value bits that the index lacks
//   4  first value (16 bits)
//   6  last value - (index << lacking bits), mod 65536: the last value is this + (buffer >> shift), without a mask or a
//      branch for the sign
// With one symbol both values have one place, and the last is stored over the first.
struct AcTable {
  static constexpr std::uint8_t kLeave = 128;
  static constexpr std::uint8_t kEndOfBlock = 128;
  std::array<std::uint64_t, 1 << kAcBits> entries;
  CanonicalCode code;
};

// A DC entry: bits consumed (8 bits; 0: not in the table), value bits that the index lacks (8), the value without them
// (16, signed).
struct DcTable {
  std::array<std::uint32_t, 1 << kDcBits> entries;
  CanonicalCode code;
};

// false: libjpeg-turbo would refuse the table (codes that do not fit, the code of all ones, DC sizes above 15).
bool build(const HuffmanSpec& spec, AcTable& table);
bool build(const HuffmanSpec& spec, DcTable& table);

}  // namespace millrace::kernels::jpeg
