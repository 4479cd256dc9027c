#include "tests/support/jpeg/jpeg_code.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace millrace {
namespace {

constexpr int kLongest = 16;

struct Symbol {
  std::uint8_t symbol;
  int length;
};

// `count[length]` codes for the symbols, shorter ones first.
JpegCode code_of(std::vector<Symbol> symbols, const std::vector<int>& count) {
  std::stable_sort(symbols.begin(), symbols.end(),
                   [](const Symbol& a, const Symbol& b) { return a.length < b.length; });
  JpegCode code;
  for (const Symbol& symbol : symbols) code.symbols.push_back(symbol.symbol);
  for (std::size_t i = 0; i < kLongest; ++i) code.counts[i] = static_cast<std::uint8_t>(count[i + 1]);
  return code;
}

// Huffman's tree: the leaves' depths.
std::vector<int> depths(const std::vector<std::uint64_t>& weights) {
  struct Node {
    std::uint64_t weight;
    std::size_t parent;
  };
  std::vector<Node> nodes;
  std::vector<std::size_t> open;
  const auto heavier = [&](std::size_t a, std::size_t b) { return nodes[a].weight > nodes[b].weight; };
  const auto add = [&](std::uint64_t weight) {
    open.push_back(nodes.size());
    nodes.push_back({weight, 0});
    std::push_heap(open.begin(), open.end(), heavier);
  };
  for (const std::uint64_t weight : weights) add(weight);
  while (open.size() > 1) {
    std::uint64_t weight = 0;
    for (int child = 0; child < 2; ++child) {
      std::pop_heap(open.begin(), open.end(), heavier);
      nodes[open.back()].parent = nodes.size();
      weight += nodes[open.back()].weight;
      open.pop_back();
    }
    add(weight);
  }
  std::vector<int> result(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    for (std::size_t at = i; at + 1 < nodes.size(); at = nodes[at].parent) ++result[i];
  }
  return result;
}

// T.81 figure K.3: `count[length]` codes, of which none is longer than 16 bits in the end.
void shorten(std::vector<int>& count) {
  for (std::size_t i = count.size() - 1; i > kLongest; --i) {
    while (count[i] > 0) {
      std::size_t j = i - 2;
      while (count[j] == 0) --j;
      count[i] -= 2;
      ++count[i - 1];
      count[j + 1] += 2;
      --count[j];
    }
  }
}

}  // namespace

const JpegCode& default_dc_code() {
  static const JpegCode kCode{{0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}};
  return kCode;
}

const JpegCode& default_ac_code() {
  static const JpegCode kCode{
      {0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 0x7D},
      {0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07, 0x22, 0x71,
       0x14, 0x32, 0x81, 0x91, 0xA1, 0x08, 0x23, 0x42, 0xB1, 0xC1, 0x15, 0x52, 0xD1, 0xF0, 0x24, 0x33, 0x62, 0x72,
       0x82, 0x09, 0x0A, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2A, 0x34, 0x35, 0x36, 0x37,
       0x38, 0x39, 0x3A, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4A, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59,
       0x5A, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6A, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7A, 0x83,
       0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9A, 0xA2, 0xA3,
       0xA4, 0xA5, 0xA6, 0xA7, 0xA8, 0xA9, 0xAA, 0xB2, 0xB3, 0xB4, 0xB5, 0xB6, 0xB7, 0xB8, 0xB9, 0xBA, 0xC2, 0xC3,
       0xC4, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xD2, 0xD3, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8, 0xD9, 0xDA, 0xE1, 0xE2,
       0xE3, 0xE4, 0xE5, 0xE6, 0xE7, 0xE8, 0xE9, 0xEA, 0xF1, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6, 0xF7, 0xF8, 0xF9, 0xFA}};
  return kCode;
}

JpegCode flat_code(int length, std::vector<std::uint8_t> symbols) {
  JpegCode code{.symbols = std::move(symbols)};
  code.counts[static_cast<std::size_t>(length - 1)] = static_cast<std::uint8_t>(code.symbols.size());
  return code;
}

JpegCode optimal_code(const JpegFrequencies& frequencies) {
  std::vector<Symbol> symbols;
  std::vector<std::uint64_t> weights;
  for (std::size_t symbol = 0; symbol < frequencies.size(); ++symbol) {
    if (frequencies[symbol] == 0) continue;
    symbols.push_back({static_cast<std::uint8_t>(symbol), 0});
    weights.push_back(frequencies[symbol]);
  }
  if (symbols.empty()) {
    symbols.push_back({0, 0});
    weights.push_back(1);
  }
  weights.push_back(0);  // the code of all ones, which nothing may have: the rarest, so one of the longest
  const std::vector<int> lengths = depths(weights);
  std::vector<int> count(weights.size() + kLongest);
  for (const int length : lengths) ++count[static_cast<std::size_t>(length)];
  shorten(count);
  for (std::size_t i = 0; i < symbols.size(); ++i) symbols[i].length = lengths[i];
  std::size_t longest = kLongest;
  while (count[longest] == 0) --longest;
  --count[longest];
  return code_of(std::move(symbols), count);
}

JpegCode random_code(const JpegFrequencies& frequencies, int most_symbol, std::mt19937& random) {
  std::vector<Symbol> symbols;
  const unsigned unused = random() % 3 == 0 ? 8 : 100;  // one in so many of those that do not occur
  for (int symbol = 0; symbol <= most_symbol; ++symbol) {
    if (frequencies[static_cast<std::size_t>(symbol)] > 0 || random() % unused == 0)
      symbols.push_back({static_cast<std::uint8_t>(symbol), kLongest});
  }
  if (symbols.empty()) symbols.push_back({0, kLongest});
  std::shuffle(symbols.begin(), symbols.end(), random);
  symbols[0].length = kLongest - 1;  // for a table states at most 255 codes of one length
  const auto share = [](int length) { return 1U << (kLongest - length); };
  std::uint32_t room = (1U << kLongest) - 2 - static_cast<std::uint32_t>(symbols.size());  // without all ones
  for (std::size_t tries = random() % (6 * symbols.size() + 1); tries > 0; --tries) {
    Symbol& symbol = symbols[random() % symbols.size()];
    const int length = 1 + static_cast<int>(random() % static_cast<unsigned>(symbol.length));
    const std::uint32_t more = share(length) - share(symbol.length);
    if (more > room) continue;
    room -= more;
    symbol.length = length;
  }
  std::vector<int> count(kLongest + 1);
  for (const Symbol& symbol : symbols) ++count[static_cast<std::size_t>(symbol.length)];
  return code_of(std::move(symbols), count);
}

}  // namespace millrace
