// The horizontal pass by windows: four neighbouring output samples take their taps from 16 bytes of the row, and the
// windows of a group fill a vector, so that no part of it is empty. For targets whose byte shuffles stay within 128
// bits. Internal to kernels/cpu.
//
// Taps come in blocks of two pairs (table.blocks) and then of one (table.pairs). A window has a step for each block:
// where its 16 bytes lie. A group's lines are vectors, for each block: a byte shuffle, then weights, a dword a sample:
//   of one pair    taps 0 and 1 as words; the weights' upper parts and lower parts (PairWeights)
//   of two         the first pair as words, with which the second is 2 * channels bytes further; PairWeights of both
//   table.upper_bytes, of two   taps 0, 2, 1, 3 as bytes; the upper parts as bytes in that order; the lower parts of 0
//                  and 1 as words, of 2 and 3. Weight = upper * 2^kLowBits + lower, lower positive.
// Upper bytes are for tables without negative weights. Then no sum of two taps times these leaves 16 bits.
#pragma once

#if defined(__x86_64__)

#include <cstdint>

#include "kernels/cpu/rows/row_kernels.h"

namespace millrace::kernels {

inline constexpr int kWindowSamples = 4;

// Vectors of a block of two pairs, of a group.
constexpr int block_vectors(const AxisTable& table) {
  return table.upper_bytes ? 4 : 5;
}
constexpr int window_vectors(const AxisTable& table) {
  return block_vectors(table) * table.blocks + 3 * table.pairs;
}
// Those of them that are weights.
constexpr int weight_vectors(const AxisTable& table) {
  return window_vectors(table) - table.blocks - table.pairs;
}

// Packs for vectors of two or four windows and sets table.windows. False: too few bytes hold the taps, and nothing has
// changed.
bool pack_row_windows(int windows, AxisTable& table);

void windows_avx2(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows], std::uint8_t* quad);
void windows_rows_avx2(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows],
                       std::uint8_t* const out[kQuadRows]);

}  // namespace millrace::kernels

#endif  // __x86_64__
