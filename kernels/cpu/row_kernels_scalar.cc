#include <algorithm>
#include <cstring>

#include "kernels/cpu/row_kernels.h"

namespace millrace::kernels {
namespace {

constexpr std::int32_t kHalf = 1 << (kPrecisionBits - 1);
constexpr int kChunk = 64;

std::uint8_t to_byte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kPrecisionBits, 0, 255));
}

int samples_of(const AxisTable& columns) {
  return columns.spec.count * columns.spec.channels;
}

// A quad of the scalar target is its four rows one after the other.
std::size_t pitch_of(int samples) {
  return quad_bytes(samples) / kQuadRows;
}

void pack_columns(AxisTable& table) {
  table.blocks = (table.weights.taps + 3) / 4;
}

// Sample i goes to out[i * kSpacing].
template <int kChannels, int kSpacing = 1>
void filter_row(const AxisWeights& weights, int count, const std::uint8_t* row, std::uint8_t* out) {
  const std::int32_t* weight = weights.weight.data();
  for (int x = 0; x < count; ++x, weight += weights.taps, out += kChannels * kSpacing) {
    const std::uint8_t* pixel = row + std::ptrdiff_t{weights.start[x]} * kChannels;
    std::int32_t sum[kChannels];
    std::fill_n(sum, kChannels, kHalf);
    for (int t = 0; t < weights.taps; ++t, pixel += kChannels) {
      for (int c = 0; c < kChannels; ++c) sum[c] += pixel[c] * weight[t];
    }
    for (int c = 0; c < kChannels; ++c) out[c * kSpacing] = to_byte(sum[c]);
  }
}

void horizontal(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows], std::uint8_t* quad) {
  const std::size_t pitch = pitch_of(samples_of(columns));
  for (int r = 0; r < kQuadRows; ++r) {
    std::uint8_t* out = quad + r * pitch;
    if (columns.spec.channels == 1) filter_row<1>(columns.weights, columns.spec.count, rows[r], out);
    if (columns.spec.channels == 3) filter_row<3>(columns.weights, columns.spec.count, rows[r], out);
    if (columns.spec.channels == 4) filter_row<4>(columns.weights, columns.spec.count, rows[r], out);
  }
}

void interleave(const std::uint8_t* const rows[kQuadRows], int samples, std::uint8_t* quad) {
  for (int r = 0; r < kQuadRows; ++r)
    std::memcpy(quad + r * pitch_of(samples), rows[r], static_cast<std::size_t>(samples));
}

void vertical(const AxisTable& rows, int y, const std::uint8_t* const* quads, int samples, std::uint8_t* out) {
  const std::size_t pitch = pitch_of(samples);
  const int taps = rows.weights.taps;
  const std::int32_t* weight = &rows.weights.weight[static_cast<std::size_t>(y) * taps];
  const int first = weight_row(rows, y);
  for (int x = 0; x < samples; x += kChunk) {
    std::int32_t sum[kChunk];
    std::fill_n(sum, kChunk, kHalf);
    for (int t = 0; t < taps; ++t) {
      const int row = first + t;
      const std::uint8_t* in = quads[row / kQuadRows] + (row % kQuadRows) * pitch + x;
      const std::int32_t w = weight[t];
      for (int i = 0; i < kChunk; ++i) sum[i] += in[i] * w;
    }
    for (int i = 0; i < kChunk; ++i) out[x + i] = to_byte(sum[i]);
  }
}

}  // namespace

void interleaved_horizontal(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows], std::uint8_t* quad) {
  for (int r = 0; r < kQuadRows; ++r) {
    if (columns.spec.channels == 1) filter_row<1, kQuadRows>(columns.weights, columns.spec.count, rows[r], quad + r);
    if (columns.spec.channels == 3) filter_row<3, kQuadRows>(columns.weights, columns.spec.count, rows[r], quad + r);
    if (columns.spec.channels == 4) filter_row<4, kQuadRows>(columns.weights, columns.spec.count, rows[r], quad + r);
  }
}

void interleave_plain(const std::uint8_t* const rows[kQuadRows], int first, int samples, std::uint8_t* quad) {
  for (int i = first; i < samples; ++i) {
    for (int r = 0; r < kQuadRows; ++r) quad[std::ptrdiff_t{i} * kQuadRows + r] = rows[r][i];
  }
}

void place_quads(AxisTable& table) {
  const AxisWeights& weights = table.weights;
  table.origin = weights.start.front();
  const int rows_needed = weights.start.back() + weights.taps - table.origin;
  const int total = (rows_needed + kQuadRows - 1) / kQuadRows;
  table.blocks = 1;
  for (const int start : weights.start) {
    const int first = start - table.origin;
    table.blocks = std::max(table.blocks, (first + weights.taps - 1) / kQuadRows - first / kQuadRows + 1);
  }
  table.steps.clear();
  for (const int start : weights.start)
    table.steps.push_back({std::min((start - table.origin) / kQuadRows, total - table.blocks), 0});
}

const RowKernels& scalar_row_kernels() {
  static constexpr RowKernels kKernels{pack_columns, place_quads, horizontal, interleave, vertical};
  return kKernels;
}

const RowKernels& row_kernels(Target target) {
#if defined(__x86_64__)
  if (target == Target::kAvx512) return avx512_row_kernels();
  if (target == Target::kAvx2) return avx2_row_kernels();
#endif
  (void)target;
  return scalar_row_kernels();
}

}  // namespace millrace::kernels
