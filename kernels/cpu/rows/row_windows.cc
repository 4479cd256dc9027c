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

// All output samples in groups of `lanes`, the last of which the last sample fills up.
class Samples {
 public:
  Samples(const AxisTable& table, int lanes) : firsts_(first_bytes(table)), lanes_(static_cast<std::size_t>(lanes)) {
    const int channels = table.spec.channels;
    pixels_.resize(firsts_.size());
    for (int x = 0; x < table.spec.count; ++x)
      std::fill_n(&pixels_[static_cast<std::size_t>(x) * channels], channels, static_cast<std::uint32_t>(x));
    const std::size_t all = (firsts_.size() + lanes_ - 1) / lanes_ * lanes_;
    firsts_.resize(all, firsts_.back());
    pixels_.resize(all, pixels_.back());
  }

  std::size_t groups() const { return firsts_.size() / lanes_; }
  // Of a group: where each sample's first tap lies, and which pixel it belongs to.
  const std::int32_t* firsts(std::size_t group) const { return &firsts_[group * lanes_]; }
  const std::uint32_t* pixels(std::size_t group) const { return &pixels_[group * lanes_]; }

 private:
  std::vector<std::int32_t> firsts_;
  std::vector<std::uint32_t> pixels_;
  std::size_t lanes_;
};

// The steps of all windows; empty: some taps leave their window.
std::vector<AxisTable::Step> steps_of(const AxisTable& table, const Samples& samples, const Cut& cut, int windows) {
  const int channels = table.spec.channels, last_base = table.spec.in * channels - kWindowBytes;
  std::vector<AxisTable::Step> steps(samples.groups() * static_cast<std::size_t>(cut.blocks() * windows));
  AxisTable::Step* step = steps.data();
  for (std::size_t group = 0; group < samples.groups(); ++group, step += cut.blocks() * windows) {
    const std::int32_t* first = samples.firsts(group);
    for (int w = 0; w < windows; ++w, first += kWindowSamples) {
      const int low = std::min(std::min(first[0], first[1]), std::min(first[2], first[3]));
      const int high = std::max(std::max(first[0], first[1]), std::max(first[2], first[3]));
      for (int b = 0; b < cut.blocks(); ++b) {
        const int base = std::min(low + cut.tap(b) * channels, last_base);
        const int last_tap = std::min(cut.tap(b) + cut.taps(b), table.weights.taps) - 1;
        if (high + last_tap * channels - base >= kWindowBytes) return {};
        step[b * windows + w] = {base, 0};
      }
    }
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

// The vector of a group's shuffle indices. `pattern`: those of a sample at byte 0.
template <int kWindows>
void put_indices(const std::int32_t* firsts, const AxisTable::Step* steps, int skipped, std::uint32_t pattern,
                 std::uint8_t* line) {
  for (int w = 0; w < kWindows; ++w) {
    const int from = steps[w].source - skipped;
    for (int i = 0; i < kWindowSamples; ++i, ++firsts, line += 4) {
      const std::uint32_t indices = pattern + static_cast<std::uint32_t>(*firsts - from) * 0x01010101U;
      std::memcpy(line, &indices, sizeof indices);
    }
  }
}

// The lines of all samples.
template <int kWindows>
void pack_lines(AxisTable& table, const Samples& samples) {
  constexpr std::size_t kVector = std::size_t{kWindows} * kWindowBytes;
  const int channels = table.spec.channels, blocks = table.blocks, pairs = table.pairs;
  const int per_block = block_vectors(table) - 1;
  const auto per_pixel = static_cast<std::uint32_t>(weight_vectors(table));
  const std::uint32_t pair = bytes_of(0, 0x80, channels, 0x80);
  const std::uint32_t two = table.upper_bytes ? bytes_of(0, 2 * channels, channels, 3 * channels) : pair;
  table.lines.resize((samples.groups() * kVector * window_vectors(table) + sizeof(Line) - 1) / sizeof(Line));
  const std::vector<std::uint32_t> dwords = weight_dwords(table);
  std::uint8_t* line = table.packed_bytes();
  const AxisTable::Step* step = table.steps.data();
  for (std::size_t group = 0; group < samples.groups(); ++group) {
    const std::uint32_t* const pixels = samples.pixels(group);
    const std::uint32_t* weights = dwords.data();
    for (int b = 0, skipped = 0; b < blocks + pairs; ++b, step += kWindows) {
      const bool whole = b < blocks;
      put_indices<kWindows>(samples.firsts(group), step, skipped, whole ? two : pair, line);
      line += kVector;
      for (int v = whole ? per_block : 2; v > 0; --v, ++weights, line += kVector) {
        for (int i = 0; i < kWindows * kWindowSamples; ++i)
          std::memcpy(line + 4 * i, weights + pixels[i] * per_pixel, sizeof *weights);
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
  const Samples samples(table, windows * kWindowSamples);
  Cut cut = widest_cut(table.weights.taps);
  std::vector<AxisTable::Step> steps = steps_of(table, samples, cut, windows);
  if (steps.empty()) {
    cut = narrowest_cut(table.weights.taps);
    steps = steps_of(table, samples, cut, windows);
  }
  if (steps.empty()) return false;
  table.windows = windows;
  table.blocks = cut.two;
  table.pairs = cut.one;
  table.upper_bytes = has_upper_bytes(table);
  table.steps = std::move(steps);
  windows == 2 ? pack_lines<2>(table, samples) : pack_lines<4>(table, samples);
  return true;
}

}  // namespace millrace::kernels

#endif  // __x86_64__
