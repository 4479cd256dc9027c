// The horizontal pass by windows: four neighbouring output samples take their taps from 16 bytes of the row, and the
// windows of a group fill a vector, so that no part of it is empty. For targets whose byte shuffles stay within 128
// bits. Internal to kernels/cpu.
//
// Taps come in blocks of two pairs (table.blocks) and then of one (table.pairs). Every window has a step for each block:
// where its 16 bytes lie. A group's lines are vectors, for each block: the shuffle that takes the first pair of taps of
// each sample as two words, then for each pair the upper parts of the weights and their lower parts (PairWeights).
#pragma once

#if defined(__x86_64__)

#include <cstdint>

#include "kernels/cpu/rows/row_kernels.h"

namespace millrace::kernels {

inline constexpr int kWindowSamples = 4;

// Vectors of a group.
constexpr int window_vectors(const AxisTable& table) {
  return 5 * table.blocks + 3 * table.pairs;
}

// Packs for vectors of `windows` windows and sets table.windows. False: too few bytes hold the taps, and nothing has
// changed.
bool pack_row_windows(int windows, AxisTable& table);

void windows_avx2(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows], std::uint8_t* quad);
void windows_rows_avx2(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows],
                       std::uint8_t* const out[kQuadRows]);

}  // namespace millrace::kernels

#endif  // __x86_64__
