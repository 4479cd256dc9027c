#include "kernels/cpu/rows/row_windows.h"

#if defined(__x86_64__)

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace millrace::kernels {
namespace {

constexpr int kWindowBytes = 16;

// The first byte of each output sample.
std::vector<std::int32_t> first_bytes(const AxisTable& table) {
  const int channels = table.spec.channels;
  std::vector<std::int32_t> firsts;
  firsts.reserve(table.weights.start.size() * static_cast<std::size_t>(channels));
  for (const std::int32_t start : table.weights.start) {
    for (int c = 0; c < channels; ++c) firsts.push_back(start * channels + c);
  }
  return firsts;
}

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
    const auto begin = firsts.begin() + static_cast<std::ptrdiff_t>(sample);
    const auto [low, high] =
        std::minmax_element(begin, begin + std::min<std::ptrdiff_t>(kWindowSamples, firsts.end() - begin));
    for (int b = 0; b < cut.blocks(); ++b) {
      const int base = std::min(*low + cut.tap(b) * channels, last_base);
      const int last_tap = std::min(cut.tap(b) + cut.taps(b), table.weights.taps) - 1;
      if (*high + last_tap * channels - base >= kWindowBytes) return {};
      step[b * windows] = {base, 0};
    }
    ++step;
    if ((sample + kWindowSamples) % group == 0) step += (cut.blocks() - 1) * windows;
  }
  return steps;
}

// A tap and the one after it as words of a dword, for a byte shuffle.
std::uint32_t words_from(int byte, int channels) {
  return static_cast<std::uint32_t>(byte | (byte + channels) << 16) | 0x80008000U;
}

// PairWeights as dwords.
struct PairDwords {
  std::uint32_t high, low;
};
PairDwords dwords_of(std::int32_t first, std::int32_t second) {
  PairWeights pair;
  pack_weight(pair, 0, first);
  pack_weight(pair, 1, second);
  const auto joined = [](const std::int16_t words[2]) {
    return static_cast<std::uint16_t>(words[0]) | static_cast<std::uint32_t>(words[1]) << 16;
  };
  return {joined(pair.high), joined(pair.low)};
}

// The lines of one sample; `at` is its dword of the first of them.
void pack_sample(const AxisTable& table, const PairDwords* pairs, const AxisTable::Step* step, int first,
                 std::uint8_t* at) {
  const int channels = table.spec.channels, windows = table.windows;
  const std::ptrdiff_t vector = static_cast<std::ptrdiff_t>(windows) * kWindowBytes;
  for (int b = 0; b < table.blocks + table.pairs; ++b, step += windows) {
    const std::uint32_t words = words_from(first - step->source, channels);
    std::memcpy(at, &words, sizeof words);
    at += vector;
    for (int p = b < table.blocks ? 2 : 1; p > 0; --p, ++pairs, first += 2 * channels, at += 2 * vector) {
      std::memcpy(at, &pairs->high, sizeof pairs->high);
      std::memcpy(at + vector, &pairs->low, sizeof pairs->low);
    }
  }
}

// The lines of all samples.
void pack_lines(AxisTable& table, const std::vector<std::int32_t>& firsts) {
  const int channels = table.spec.channels, taps = table.weights.taps, blocks = table.blocks + table.pairs;
  const std::size_t group = static_cast<std::size_t>(table.windows) * kWindowSamples;
  const std::size_t group_bytes = group * sizeof(std::uint32_t) * static_cast<std::size_t>(window_vectors(table));
  const std::size_t groups = (firsts.size() + group - 1) / group;
  table.lines.assign((groups * group_bytes + sizeof(Line) - 1) / sizeof(Line), Line{});
  std::vector<PairDwords> pairs(static_cast<std::size_t>(2 * table.blocks + table.pairs));
  const std::int32_t* weight = table.weights.weight.data();
  std::uint8_t* lines = table.packed_bytes();
  const AxisTable::Step* steps = table.steps.data();
  std::size_t lane = 0;
  for (std::size_t sample = 0; sample < firsts.size(); weight += taps) {
    for (int t = 0; t < taps; t += 2)
      pairs[static_cast<std::size_t>(t) / 2] = dwords_of(weight[t], t + 1 < taps ? weight[t + 1] : 0);
    for (int c = 0; c < channels; ++c, ++sample) {
      pack_sample(table, pairs.data(), steps + lane / kWindowSamples, firsts[sample], lines + 4 * lane);
      if (++lane < group) continue;
      lane = 0;
      lines += group_bytes;
      steps += blocks * table.windows;
    }
  }
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
  table.steps = std::move(steps);
  pack_lines(table, firsts);
  return true;
}

}  // namespace millrace::kernels

#endif  // __x86_64__
