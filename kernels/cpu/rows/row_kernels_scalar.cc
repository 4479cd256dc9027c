#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/cpu/rows/row_kernels.h"

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
template <int kChannels, int kSpacing = 1, class Sample>
void filter_row(const AxisWeights& weights, int count, const std::uint8_t* row, Sample* out) {
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

void horizontal_rows(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows],
                     std::uint8_t* const out[kQuadRows]) {
  for (int r = 0; r < kQuadRows; ++r) {
    if (columns.spec.channels == 1) filter_row<1>(columns.weights, columns.spec.count, rows[r], out[r]);
    if (columns.spec.channels == 3) filter_row<3>(columns.weights, columns.spec.count, rows[r], out[r]);
    if (columns.spec.channels == 4) filter_row<4>(columns.weights, columns.spec.count, rows[r], out[r]);
  }
}

void horizontal(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows], std::uint8_t* quad) {
  const std::size_t pitch = pitch_of(samples_of(columns));
  std::uint8_t* const out[kQuadRows] = {quad, quad + pitch, quad + 2 * pitch, quad + 3 * pitch};
  horizontal_rows(columns, rows, out);
}

void interleave(const std::uint8_t* const rows[kQuadRows], int samples, std::uint8_t* quad) {
  for (int r = 0; r < kQuadRows; ++r)
    std::memcpy(quad + r * pitch_of(samples), rows[r], static_cast<std::size_t>(samples));
}

void vertical(const AxisTable& rows, int y, const std::uint8_t* const* quads, int samples, std::uint8_t* out) {
  const std::size_t pitch = pitch_of(samples);
  const int taps = rows.weights.taps;
  const std::int32_t* weight = &rows.weights.weight[static_cast<std::size_t>(y) * taps];
  const auto [pair, pairs] = rows.row_steps[y];
  const int first = weight_row(rows, y);
  for (int x = 0; x < samples; x += kChunk) {
    std::int32_t sum[kChunk];
    std::fill_n(sum, kChunk, kHalf);
    for (int t = std::max(0, -first); t < std::min(taps, 2 * pairs - first); ++t) {
      const int row = pair % 2 * 2 + first + t;
      const std::uint8_t* in = quads[row / kQuadRows] + (row % kQuadRows) * pitch + x;
      const std::int32_t w = weight[t];
      for (int i = 0; i < kChunk; ++i) sum[i] += in[i] * w;
    }
    for (int i = 0; i < kChunk; ++i) out[x + i] = to_byte(sum[i]);
  }
}

// Where the SIMD targets' quad has the samples of row `r`: every second word from here on.
std::uint16_t* words_of(std::uint8_t* quad, int samples, int r) {
  return reinterpret_cast<std::uint16_t*>(quad + r / 2 * pair_bytes(samples)) + r % 2;
}

// The first and the last tap of output `y` whose weight is not 0.
std::pair<int, int> used_taps(const AxisWeights& weights, int y) {
  const std::int32_t* const weight = &weights.weight[static_cast<std::size_t>(y) * weights.taps];
  int first = 0, last = weights.taps - 1;
  while (first < last && weight[first] == 0) ++first;
  while (last > first && weight[last] == 0) --last;
  return {first, last};
}

}  // namespace

void plain_horizontal(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows], std::uint8_t* quad) {
  const int samples = samples_of(columns), count = columns.spec.count;
  for (int r = 0; r < kQuadRows; ++r) {
    std::uint16_t* const out = words_of(quad, samples, r);
    if (columns.spec.channels == 1) filter_row<1, 2>(columns.weights, count, rows[r], out);
    if (columns.spec.channels == 3) filter_row<3, 2>(columns.weights, count, rows[r], out);
    if (columns.spec.channels == 4) filter_row<4, 2>(columns.weights, count, rows[r], out);
  }
}

void plain_horizontal_rows(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows],
                           std::uint8_t* const out[kQuadRows]) {
  horizontal_rows(columns, rows, out);
}

void plain_interleave(const std::uint8_t* const rows[kQuadRows], int first, int samples, std::uint8_t* quad) {
  for (int r = 0; r < kQuadRows; ++r) {
    std::uint16_t* const out = words_of(quad, samples, r);
    for (int i = first; i < samples; ++i) out[2 * std::ptrdiff_t{i}] = rows[r][i];
  }
}

// Weights of 0 need no rows. The first pair never falls, so that a ring may forget what lies before it.
void place_pairs(AxisTable& table) {
  const AxisWeights& weights = table.weights;
  table.origin = weights.start.front();
  table.row_steps.resize(weights.start.size());
  table.pairs = table.quads = 1;
  int lowest = (weights.start.back() - table.origin + weights.taps) / 2;
  for (int y = table.spec.count - 1; y >= 0; --y) {
    const auto [first, last] = used_taps(weights, y);
    const int begin = weights.start[y] - table.origin;
    lowest = std::min(lowest, (begin + first) / 2);
    const int end = (begin + last) / 2 + 1;
    table.row_steps[y] = {lowest, end - lowest};
    table.pairs = std::max(table.pairs, end - lowest);
    table.quads = std::max(table.quads, (end - 1) / 2 - lowest / 2 + 1);
  }
}

std::vector<std::int32_t> first_bytes(const AxisTable& table) {
  const int channels = table.spec.channels;
  std::vector<std::int32_t> firsts(table.weights.start.size() * static_cast<std::size_t>(channels));
  std::int32_t* first = firsts.data();
  for (const std::int32_t start : table.weights.start) {
    for (int c = 0; c < channels; ++c) *first++ = start * channels + c;
  }
  return firsts;
}

void pack_pairs(AxisTable& table) {
  place_pairs(table);
  const std::size_t bytes = static_cast<std::size_t>(table.spec.count) * table.pairs * sizeof(PairWeights);
  table.lines.assign((bytes + sizeof(Line) - 1) / sizeof(Line), Line{});
  auto* const packed = reinterpret_cast<PairWeights*>(table.packed_bytes());
  for (int y = 0; y < table.spec.count; ++y) {
    const auto [first, last] = used_taps(table.weights, y);
    const std::int32_t* const weight = &table.weights.weight[static_cast<std::size_t>(y) * table.weights.taps];
    for (int t = first; t <= last; ++t) {
      const int row = weight_row(table, y) + t;
      pack_weight(packed[static_cast<std::ptrdiff_t>(y) * table.pairs + row / 2], row % 2, weight[t]);
    }
  }
}

const RowKernels& scalar_row_kernels() {
  static constexpr RowKernels kKernels{pack_columns, place_pairs, horizontal, horizontal_rows, interleave, vertical};
  return kKernels;
}

const RowKernels& row_kernels(Target target) {
#if defined(__x86_64__)
  if (target == Target::kAvx512) return avx512_row_kernels();
  if (target == Target::kAvx512Bw) return avx512bw_row_kernels();
  if (target != Target::kScalar) return avx2_row_kernels();
#endif
  (void)target;
  return scalar_row_kernels();
}

}  // namespace millrace::kernels
