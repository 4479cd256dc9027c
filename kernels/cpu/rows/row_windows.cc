#include "kernels/cpu/rows/row_windows.h"

#if defined(__x86_64__)

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace millrace::kernels {
namespace {

constexpr int kWindowBytes = 16;

// How taps are cut into blocks: so many of two pairs, then so many of one.
struct Cut {
  int two, one;

  int blocks() const { return two + one; }
  int tap(int block) const { return 4 * std::min(block, two) + 2 * std::max(block - two, 0); }
  int taps(int block) const { return block < two ? 4 : 2; }
};

Cut widest_cut(int taps) {
  return taps % 4 == 1 || taps % 4 == 2 ? Cut{taps / 4, 1} : Cut{(taps + 3) / 4, 0};
}
Cut narrowest_cut(int taps) {
  return {0, (taps + 1) / 2};
}

// The steps of all windows, in groups of `windows`; empty: some taps leave their window.
std::vector<AxisTable::Step> steps_of(const AxisTable& table, const std::vector<std::int32_t>& firsts, const Cut& cut,
                                      int windows) {
  const int channels = table.spec.channels, last_base = table.spec.in * channels - kWindowBytes;
  const std::size_t group = static_cast<std::size_t>(windows) * kWindowSamples;
  const std::size_t groups = (firsts.size() + group - 1) / group;
  std::vector<AxisTable::Step> steps(groups * static_cast<std::size_t>(cut.blocks() * windows));
  AxisTable::Step* step = steps.data();
  for (std::size_t sample = 0; sample < firsts.size(); sample += kWindowSamples) {
    int low = firsts[sample], high = low;
    for (std::size_t i = sample + 1; i < std::min(sample + kWindowSamples, firsts.size()); ++i)
      low = std::min(low, firsts[i]), high = std::max(high, firsts[i]);
    for (int b = 0; b < cut.blocks(); ++b) {
      const int base = std::min(low + cut.tap(b) * channels, last_base);
      const int last_tap = std::min(cut.tap(b) + cut.taps(b), table.weights.taps) - 1;
      if (high + last_tap * channels - base >= kWindowBytes) return {};
      step[b * windows] = {base, 0};
    }
    ++step;
    if ((sample + kWindowSamples) % group == 0) step += (cut.blocks() - 1) * windows;
  }
  return steps;
}

// Four bytes of a dword.
std::uint32_t bytes_of(int first, int second, int third, int fourth) {
  const auto byte = [](int value) { return static_cast<std::uint32_t>(static_cast<std::uint8_t>(value)); };
  return byte(first) | byte(second) << 8 | byte(third) << 16 | byte(fourth) << 24;
}

// Four taps with the upper parts as bytes: three dwords.
std::uint32_t* put_bytes(const std::int32_t* weight, std::uint32_t* out) {
  const auto high = [&](int t) { return weight[t] >> kLowBits; };
  const auto low = [&](int t) { return weight[t] & ((1 << kLowBits) - 1); };
  out[0] = bytes_of(high(0), high(2), high(1), high(3));
  out[1] = joined_words(low(0), low(1));
  out[2] = joined_words(low(2), low(3));
  return out + 3;
}
// A pair of taps: two.
std::uint32_t* put_words(const std::int32_t* weight, std::uint32_t* out) {
  PairWeights pair;
  for (int t = 0; t < 2; ++t) pack_weight(pair, t, weight[t]);
  out[0] = joined_words(pair.high[0], pair.high[1]);
  out[1] = joined_words(pair.low[0], pair.low[1]);
  return out + 2;
}

// The weights of all pixels, of each a dword for each vector of weights.
std::vector<std::uint32_t> weight_dwords(const AxisTable& table) {
  const int taps = table.weights.taps, blocks = table.blocks, pairs = table.pairs;
  const std::size_t count = table.weights.start.size();
  std::vector<std::uint32_t> dwords(count * static_cast<std::size_t>(weight_vectors(table)));
  std::vector<std::int32_t> padded(static_cast<std::size_t>(4 * blocks + 2 * pairs));
  std::uint32_t* out = dwords.data();
  for (const std::int32_t *weight = table.weights.weight.data(), *last = weight + count * taps; weight < last;
       weight += taps) {
    for (int t = 0; t < taps; ++t) padded[static_cast<std::size_t>(t)] = weight[t];
    const std::int32_t* in = padded.data();
    const std::int32_t* const end = in + padded.size();
    for (int b = table.upper_bytes ? blocks : 0; b > 0; --b, in += 4) out = put_bytes(in, out);
    for (; in < end; in += 2) out = put_words(in, out);
  }
  return dwords;
}

// A dword for each lane of a vector of shuffle indices. `pattern`: those of a sample at byte 0.
void put_indices(const std::int32_t* firsts, int lanes, const AxisTable::Step* step, int skipped, std::uint32_t pattern,
                 std::uint8_t* line) {
  for (int lane = 0; lane < lanes; ++lane) {
    const auto byte = static_cast<std::uint32_t>(firsts[lane] + skipped - step[lane / kWindowSamples].source);
    const std::uint32_t indices = pattern + byte * 0x01010101U;
    std::memcpy(line + 4 * lane, &indices, sizeof indices);
  }
}

// The lines of all samples.
void pack_lines(AxisTable& table, const std::vector<std::int32_t>& firsts) {
  const int channels = table.spec.channels, windows = table.windows, blocks = table.blocks, pairs = table.pairs;
  const int lanes = windows * kWindowSamples, samples = static_cast<int>(firsts.size());
  const int per_block = block_vectors(table) - 1, per_pixel = weight_vectors(table);
  const std::uint32_t pair = bytes_of(0, 0x80, channels, 0x80);
  const std::uint32_t two = table.upper_bytes ? bytes_of(0, 2 * channels, channels, 3 * channels) : pair;
  const std::size_t vector = static_cast<std::size_t>(windows) * kWindowBytes;
  const std::size_t groups = (firsts.size() + lanes - 1) / lanes;
  table.lines.assign((groups * vector * window_vectors(table) + sizeof(Line) - 1) / sizeof(Line), Line{});
  const std::vector<std::uint32_t> dwords = weight_dwords(table);
  std::vector<std::int32_t> pixels(firsts.size());  // where the dwords of a sample's pixel begin
  for (int x = 0; x < table.spec.count; ++x)
    std::fill_n(&pixels[static_cast<std::size_t>(x) * channels], channels, x * per_pixel);
  std::uint8_t* line = table.packed_bytes();
  const AxisTable::Step* step = table.steps.data();
  for (int sample = 0; sample < samples; sample += lanes) {
    const int count = std::min(lanes, samples - sample);
    const std::int32_t* const pixel = &pixels[static_cast<std::size_t>(sample)];
    const std::uint32_t* weights = dwords.data();
    for (int b = 0, skipped = 0; b < blocks + pairs; ++b, step += windows) {
      const bool whole = b < blocks;
      put_indices(&firsts[static_cast<std::size_t>(sample)], count, step, skipped, whole ? two : pair, line);
      line += vector;
      for (int v = whole ? per_block : 2; v > 0; --v, ++weights, line += vector) {
        for (int lane = 0; lane < count; ++lane) std::memcpy(line + 4 * lane, weights + pixel[lane], sizeof *weights);
      }
      skipped += (whole ? 4 : 2) * channels;
    }
  }
}

// No weight is negative, so those of an output add up to 128 in their upper parts; one alone must stay below that.
bool has_upper_bytes(const AxisTable& table) {
  std::int32_t most = 0;
  for (const std::int32_t weight : table.weights.weight) most = std::max(most, weight);
  return table.blocks > 0 && !table.clamps && most < 128 << kLowBits;
}

}  // namespace

bool pack_row_windows(int windows, AxisTable& table) {
  if (table.spec.in * table.spec.channels < kWindowBytes) return false;
  const std::vector<std::int32_t> firsts = first_bytes(table);
  Cut cut = widest_cut(table.weights.taps);
  std::vector<AxisTable::Step> steps = steps_of(table, firsts, cut, windows);
  if (steps.empty()) {
    cut = narrowest_cut(table.weights.taps);
    steps = steps_of(table, firsts, cut, windows);
  }
  if (steps.empty()) return false;
  table.windows = windows;
  table.blocks = cut.two;
  table.pairs = cut.one;
  table.upper_bytes = has_upper_bytes(table);
  table.steps = std::move(steps);
  pack_lines(table, firsts);
  return true;
}

}  // namespace millrace::kernels

#endif  // __x86_64__
