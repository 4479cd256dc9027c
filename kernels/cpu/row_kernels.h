// What a target supplies for resampling. Internal to kernels/cpu.
//
// The horizontal pass turns four source rows into one quad: kQuadRows result rows of `samples` bytes each, laid out as
// the target likes it (the SIMD targets interleave: sample i of the four rows lies at bytes 4i..4i+3, ready for
// four-tap dot products down the column). The vertical pass of the same target reads quads back. A quad has
// quad_bytes(samples) bytes and an output row row_bytes(samples): kernels may write into that padding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/axis_table.h"
#include "kernels/cpu/target.h"

namespace millrace::kernels {

inline constexpr int kQuadRows = 4;

constexpr std::size_t row_bytes(int samples) {
  return (static_cast<std::size_t>(samples) + 63) / 64 * 64;
}
constexpr std::size_t quad_bytes(int samples) {
  return kQuadRows * row_bytes(samples + 16);
}

struct RowKernels {
  // Fill steps, lines, blocks and packed_for from spec and weights.
  void (*pack_columns)(AxisTable& table);
  void (*pack_rows)(AxisTable& table);
  // `rows`: four source rows of spec.in * spec.channels bytes.
  void (*horizontal)(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows], std::uint8_t* quad);
  // The quad of four rows of `samples` bytes as they are. Reads nothing beyond them.
  void (*interleave)(const std::uint8_t* const rows[kQuadRows], int samples, std::uint8_t* quad);
  // Output row `y` (0..count-1) from `quads`: table.blocks pointers, the first for quad steps[y].source.
  void (*vertical)(const AxisTable& rows, int y, const std::uint8_t* const* quads, int samples, std::uint8_t* out);
};

const RowKernels& row_kernels(Target target);

const RowKernels& scalar_row_kernels();
// Plain loops that make the interleaved quads of the SIMD targets: the horizontal pass for pictures too narrow for
// their loads, and samples first .. samples - 1 of interleave().
void interleaved_horizontal(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows], std::uint8_t* quad);
void interleave_plain(const std::uint8_t* const rows[kQuadRows], int first, int samples, std::uint8_t* quad);
#if defined(__x86_64__)
const RowKernels& avx2_row_kernels();
const RowKernels& avx512_row_kernels();
#endif

// The part of pack_rows() that all targets share: origin, blocks and steps. Weight `t` of output y then belongs to quad
// steps[y].source + (weight_row(table, y) + t) / 4, row (weight_row(table, y) + t) % 4 of it.
void place_quads(AxisTable& table);
inline int weight_row(const AxisTable& table, int y) {
  return table.weights.start[y] - table.origin - kQuadRows * table.steps[y].source;
}

}  // namespace millrace::kernels
