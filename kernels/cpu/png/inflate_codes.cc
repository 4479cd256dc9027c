#include "kernels/cpu/png/inflate_codes.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace millrace::kernels::png {
namespace {

constexpr unsigned kLiteralSymbols = 288, kDistanceSymbols = 32;

// RFC 1951, 3.2.5, without the codes: symbols that are in no stream are kInvalid.
constexpr auto kLiteralMeanings = [] {
  std::array<std::uint32_t, kLiteralSymbols> meanings{};
  for (std::uint32_t i = 0; i < 256; ++i) meanings[i] = i << 16 | kNoMatch | 1U << 6;
  meanings[256] = kEndsBlock;
  std::uint32_t least = 3;
  for (std::uint32_t i = 257; i < 285; ++i) {
    const std::uint32_t extra = i < 265 ? 0 : (i - 261) / 4;
    meanings[i] = least <= kShortLength ? least << 8 : least << 16 | kRare | extra;
    least += 1U << extra;
  }
  meanings[285] = 258U << 16 | kRare;
  meanings[286] = meanings[287] = kInvalid;
  return meanings;
}();

constexpr auto kDistanceMeanings = [] {
  std::array<std::uint32_t, kDistanceSymbols> meanings{};
  std::uint32_t least = 1;
  for (std::uint32_t i = 0; i < 30; ++i) {
    const std::uint32_t extra = i < 4 ? 0 : (i - 2) / 2;
    meanings[i] = least << 16 | extra;
    least += 1U << extra;
  }
  meanings[30] = meanings[31] = kInvalid;
  return meanings;
}();

// The symbol's entry where `bits` of its code are left to read.
constexpr std::uint32_t literal_entry(std::uint32_t meaning, unsigned bits) {
  const bool is_long = (meaning & kLeadsOn) == kRare;
  return meaning + bits + (is_long ? bits << 8 : 0);
}
constexpr std::uint32_t distance_entry(std::uint32_t meaning, unsigned bits) {
  return meaning + bits + (meaning == kInvalid ? 0 : bits << 8);
}

// Symbols in the order of their codes, shortest first.
struct SortedCode {
  std::array<std::uint16_t, kMostBits + 1> count{};
  std::array<std::uint16_t, kLiteralSymbols> symbols;
  unsigned used = 0;

  // How many of 1 << kMostBits code words are taken.
  std::uint32_t sort(std::span<const std::uint8_t> lengths) {
    for (const std::uint8_t length : lengths) ++count[length];
    std::array<std::uint16_t, kMostBits + 2> first{};
    std::uint32_t words = 0;
    for (unsigned length = 1; length <= kMostBits; ++length) {
      first[length + 1] = static_cast<std::uint16_t>(first[length] + count[length]);
      words += std::uint32_t{count[length]} << (kMostBits - length);
    }
    used = first[kMostBits + 1];
    for (unsigned symbol = 0; symbol < lengths.size(); ++symbol) {
      if (lengths[symbol] != 0) symbols[first[lengths[symbol]]++] = static_cast<std::uint16_t>(symbol);
    }
    return words;
  }
};

// The next code word of `length` bits, read from its lowest bit, as the stream has them.
unsigned next_word(unsigned word, unsigned length) {
  const unsigned zeros = word ^ ((1U << length) - 1);
  if (zeros == 0) return 0;
  const unsigned bit = std::bit_floor(zeros);
  return (word & (bit - 1)) | bit;
}

// A complete code. False: its tables do not fit, which no complete code of 15 bits does.
template <typename EntryOf>
bool fill(const SortedCode& code, EntryOf entry_of, unsigned main_bits, std::span<std::uint32_t> table) {
  unsigned word = 0, at = 0, length = 1;
  std::size_t filled = 1;
  table[0] = 0;
  for (; length <= main_bits; ++length) {
    std::memcpy(table.data() + filled, table.data(), filled * sizeof table[0]);
    filled *= 2;
    for (unsigned i = 0; i < code.count[length]; ++i, ++at) {
      table[word] = entry_of(code.symbols[at], length);
      word = next_word(word, length);
    }
  }
  unsigned prefix = ~0U, begin = 0, bits = 0;
  unsigned left = length <= kMostBits ? code.count[length] : 0;
  while (at < code.used) {
    for (; left == 0; left = code.count[length]) ++length;
    if ((word & ((1U << main_bits) - 1)) != prefix) {
      prefix = word & ((1U << main_bits) - 1);
      begin = static_cast<unsigned>(filled);
      bits = length - main_bits;
      std::uint32_t words = left;
      for (unsigned longer = length; words < 1U << bits && longer < kMostBits;) {
        ++bits;
        words = 2 * words + code.count[++longer];
      }
      filled += std::size_t{1} << bits;
      if (filled > table.size()) return false;
      table[prefix] = begin << 16 | kLeadsOn | bits << 8 | main_bits;
    }
    const std::uint32_t entry = entry_of(code.symbols[at], length - main_bits);
    for (unsigned i = word >> main_bits; i < 1U << bits; i += 1U << (length - main_bits)) table[begin + i] = entry;
    word = next_word(word, length);
    ++at;
    --left;
  }
  return true;
}

// Two literals that follow each other within the table's bits become one entry, and so does a short length behind them.
// An entry looks at lower ones alone, which must not have been joined yet: so from the top.
void join(std::span<std::uint32_t> table) {
  for (std::uint32_t i = 1U << kLiteralBits; i-- > 0;) {
    std::uint32_t entry = table[i];
    if ((entry & kNoMatch) == 0) continue;
    std::uint32_t next = table[i >> (entry & 63)];
    if ((next & kRare) != 0 || (entry & 63) + (next & 63) > kLiteralBits) continue;
    if ((next & kNoMatch) != 0) {
      entry = (entry & 0xFF0000) | (next & 0xFF0000) << 8 | kNoMatch | 2U << 6 | ((entry & 63) + (next & 63));
      table[i] = entry;
      next = table[i >> (entry & 63)];
      if ((next & (kRare | kNoMatch)) != 0 || (entry & 63) + (next & 63) > kLiteralBits) continue;
    }
    table[i] = (entry & ~kNoMatch) + next;
  }
}

}  // namespace

bool InflateCodes::build(std::span<const std::uint8_t> literal_lengths,
                         std::span<const std::uint8_t> distance_lengths) {
  const auto literal = [](unsigned symbol, unsigned bits) { return literal_entry(kLiteralMeanings[symbol], bits); };
  const auto distance = [](unsigned symbol, unsigned bits) { return distance_entry(kDistanceMeanings[symbol], bits); };
  SortedCode literal_code;
  if (literal_code.sort(literal_lengths) != 1U << kMostBits) return false;
  if (!fill(literal_code, literal, kLiteralBits, literals)) return false;
  join(literals);
  SortedCode code;
  const std::uint32_t words = code.sort(distance_lengths);
  if (words == 1U << kMostBits) return fill(code, distance, kDistanceBits, distances);
  if (code.used > 1 || (code.used == 1 && code.count[1] != 1)) return false;
  std::fill_n(distances.begin(), 1U << kDistanceBits, kInvalid);
  for (unsigned i = 0; code.used == 1 && i < 1U << kDistanceBits; i += 2) distances[i] = distance(code.symbols[0], 1);
  return true;
}

void InflateCodes::build_fixed() {
  std::array<std::uint8_t, kLiteralSymbols> lengths;
  std::fill_n(lengths.begin(), 144, std::uint8_t{8});
  std::fill_n(lengths.begin() + 144, 112, std::uint8_t{9});
  std::fill_n(lengths.begin() + 256, 24, std::uint8_t{7});
  std::fill_n(lengths.begin() + 280, 8, std::uint8_t{8});
  std::array<std::uint8_t, kDistanceSymbols> distance_lengths;
  distance_lengths.fill(5);
  build(lengths, distance_lengths);
}

bool build_length_code(std::span<const std::uint8_t, 19> lengths, std::span<std::uint8_t, 128> table) {
  SortedCode code;
  if (code.sort(lengths) != 1U << kMostBits) return false;
  unsigned word = 0, at = 0;
  for (unsigned length = 1; length <= 7; ++length) {
    for (unsigned i = 0; i < code.count[length]; ++i, ++at) {
      const auto entry = static_cast<std::uint8_t>(code.symbols[at] << 3 | length);
      for (unsigned place = word; place < 128; place += 1U << length) table[place] = entry;
      word = next_word(word, length);
    }
  }
  return true;
}

}  // namespace millrace::kernels::png
