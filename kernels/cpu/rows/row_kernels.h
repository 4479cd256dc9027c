// What a target supplies for resampling. Internal to kernels/cpu.
//
// The horizontal pass turns four source rows into one quad, two pairs of result rows of `samples` bytes each, laid out
// as the target likes it. The SIMD targets have a layout in common: sample i of a pair's two rows lies at bytes
// 4i..4i+3 as two 16-bit words, ready for two-tap dot products down the column, and the second pair begins
// pair_bytes(samples) after the first. The vertical pass of the same target reads quads back. A quad has
// quad_bytes(samples) bytes and an output row row_bytes(samples): kernels may write into that padding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/base/target.h"
#include "kernels/cpu/axis_table.h"

namespace millrace::kernels {

inline constexpr int kQuadRows = 4;

constexpr std::size_t row_bytes(int samples) {
  return (static_cast<std::size_t>(samples) + 63) / 64 * 64;
}
constexpr std::size_t pair_bytes(int samples) {
  return 4 * row_bytes(samples + 16);
}
constexpr std::size_t quad_bytes(int samples) {
  return kQuadRows / 2 * pair_bytes(samples);
}

struct RowKernels {
  // Fill steps, lines, sizes and packed_for from spec and weights.
  void (*pack_columns)(AxisTable& table);
  void (*pack_rows)(AxisTable& table);
  // `rows`: four source rows of spec.in * spec.channels bytes.
  void (*horizontal)(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows], std::uint8_t* quad);
  // The same to four plain rows, each of row_bytes(samples + 16) bytes.
  void (*horizontal_rows)(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows],
                          std::uint8_t* const out[kQuadRows]);
  // The quad of four rows of `samples` bytes as they are. Reads nothing beyond them.
  void (*interleave)(const std::uint8_t* const rows[kQuadRows], int samples, std::uint8_t* quad);
  // Output row `y` (0..count-1) from `quads`: the first one is that of pair row_steps[y].pair.
  void (*vertical)(const AxisTable& rows, int y, const std::uint8_t* const* quads, int samples, std::uint8_t* out);
};

const RowKernels& row_kernels(Target target);

const RowKernels& scalar_row_kernels();
// Plain loops for pictures too narrow for the loads of the SIMD targets, which make their quads or plain rows; and
// samples first .. samples - 1 of interleave().
void plain_horizontal(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows], std::uint8_t* quad);
void plain_horizontal_rows(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows],
                           std::uint8_t* const out[kQuadRows]);
void plain_interleave(const std::uint8_t* const rows[kQuadRows], int first, int samples, std::uint8_t* quad);
#if defined(__x86_64__)
const RowKernels& avx2_row_kernels();
const RowKernels& avx512bw_row_kernels();
const RowKernels& avx512_row_kernels();
#endif

// --- what targets share ---

// The part of pack_rows() that they share: origin, row_steps, pairs and quads.
void place_pairs(AxisTable& table);
// Weight `t` of output y belongs to row (weight_row(table, y) + t) of those that its first pair begins.
inline int weight_row(const AxisTable& table, int y) {
  return table.weights.start[y] - table.origin - 2 * table.row_steps[y].pair;
}

// Two weights as words for vpmaddwd and vpdpwssd: weight = high * 2^kLowBits + low with low in [-2^14, 2^14).
inline constexpr int kLowBits = 15;
struct PairWeights {
  std::int16_t high[2], low[2];
};
static_assert(sizeof(PairWeights) == 8);
inline void pack_weight(PairWeights& pair, int tap, std::int32_t weight) {
  const std::int32_t high = (weight + (1 << (kLowBits - 1))) >> kLowBits;
  pair.high[tap] = static_cast<std::int16_t>(high);
  pair.low[tap] = static_cast<std::int16_t>(weight - (high << kLowBits));
}

// Two words of a dword.
inline std::uint32_t joined_words(std::int32_t first, std::int32_t second) {
  return static_cast<std::uint16_t>(first) | static_cast<std::uint32_t>(second) << 16;
}
// The first byte of each output sample of columns.
std::vector<std::int32_t> first_bytes(const AxisTable& table);

// pack_rows() of the SIMD targets: for each output row, `pairs` PairWeights.
void pack_pairs(AxisTable& table);
inline const PairWeights* pair_weights(const AxisTable& rows, int y) {
  return reinterpret_cast<const PairWeights*>(rows.packed_bytes()) + static_cast<std::ptrdiff_t>(y) * rows.pairs;
}
// The pairs of an output row in the SIMD targets' quads.
class PairRows {
 public:
  PairRows(const AxisTable& rows, int y, const std::uint8_t* const* quads, int samples)
      : quads_(quads), odd_(rows.row_steps[y].pair % 2), pitch_(pair_bytes(samples)) {}
  const std::uint8_t* operator[](int pair) const {
    return quads_[(odd_ + pair) / 2] + static_cast<std::size_t>((odd_ + pair) % 2) * pitch_;
  }

 private:
  const std::uint8_t* const* quads_;
  int odd_;
  std::size_t pitch_;
};

}  // namespace millrace::kernels
