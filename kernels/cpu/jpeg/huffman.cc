#include "kernels/cpu/jpeg/huffman.h"

#include <algorithm>

namespace millrace::kernels::jpeg {
namespace {

// A symbol with its value, before pairs are made. length 0: not in the table. advance: coefficients, 0 for EOB.
struct Single {
  std::uint8_t length = 0;
  std::uint8_t advance = 0;
  std::int16_t value = 0;  // without the bits that the index lacks
};

// T.81 annex C, with the checks of libjpeg's jpeg_make_d_derived_tbl().
bool make_code(const HuffmanSpec& spec, CanonicalCode& result) {
  std::uint32_t code = 0;
  std::int32_t symbols = 0;
  for (int length = 1; length <= 16; ++length) {
    const auto at = static_cast<std::size_t>(length - 1);
    result.offset[at + 1] = symbols - static_cast<std::int32_t>(code);
    code += spec.counts[at];
    symbols += spec.counts[at];
    if (spec.counts[at] != 0 && code >= 1U << length) return false;
    result.limit[at] = code << (16 - length);
    code <<= 1;
  }
  result.offset[0] = 0;
  result.symbols = spec.symbols;
  return true;
}

// All indices that begin with `code`, then the value's bits as far as there is room. An entry needs the sign bit.
void fill(Single* first, int count, int missing, int size, Single entry) {
  if (size == 0) {
    std::fill_n(first, count, entry);
    return;
  }
  const int negative = 1 - (1 << size);
  for (int i = 0; i < count; ++i) {
    const int bits = missing >= 0 ? i << missing : i >> -missing;
    entry.value = static_cast<std::int16_t>(i < count / 2 ? bits + negative : bits);
    first[i] = entry;
  }
}

// `advance_of` and `size_of` say what a symbol means.
template <typename AdvanceOf, typename SizeOf>
void make_singles(const HuffmanSpec& spec, Single* singles, AdvanceOf advance_of, SizeOf size_of) {
  std::fill_n(singles, 1 << kIndexBits, Single{});
  int code = 0, at = 0;
  for (int length = 1; length <= kIndexBits; ++length, code <<= 1) {
    for (int i = 0; i < spec.counts[static_cast<std::size_t>(length - 1)]; ++i, ++at, ++code) {
      const int symbol = spec.symbols[static_cast<std::size_t>(at)];
      const int size = size_of(symbol);
      if (length + size > kMostEntryBits || (length == kIndexBits && size > 0)) continue;
      const int free_bits = kIndexBits - length;
      const Single entry{static_cast<std::uint8_t>(length + size), static_cast<std::uint8_t>(advance_of(symbol)), 0};
      fill(singles + (code << free_bits), 1 << free_bits, size - free_bits, size, entry);
    }
  }
}

// Run of 16 zeros, run and value, or end of block (which all other symbols without a value are for libjpeg).
int ac_advance(int symbol) {
  if ((symbol & 15) == 0) return symbol == 0xF0 ? 16 : 0;
  return (symbol >> 4) + 1;
}

// A look-up gives both where the index holds them whole, and where both fit into 8 bytes from the first on.
bool makes_pair(const Single& first, const Single& second) {
  return first.length != 0 && first.advance != 0 && second.length != 0 && second.advance <= 3 &&
         first.length + second.length <= kIndexBits;
}

// The consumed bits that the index has, where they stand in all the consumed ones.
std::uint32_t known_bits(std::uint32_t index, int length) {
  return length <= kIndexBits ? index >> (kIndexBits - length) : index << (length - kIndexBits);
}

std::uint64_t pack(std::uint32_t index, const Single& first, const Single* second, bool is_dc) {
  const Single& last = second ? *second : first;
  if (first.length == 0) return std::uint64_t{HuffmanTable::kLeave} << 40;
  const bool ends = last.advance == 0;
  const auto length = static_cast<std::uint32_t>(first.length + (second ? second->length : 0));
  const std::uint64_t advance = static_cast<std::uint64_t>(2 * (first.advance + (second ? second->advance : 0)));
  const auto place = static_cast<std::uint64_t>(first.advance > 0 ? 2 * first.advance - 2 : 0);
  const std::uint64_t turn = ends || is_dc ? HuffmanTable::kSwitch : 0;
  const std::uint64_t end = ends ? HuffmanTable::kEndOfBlock : 0;
  const auto rest = static_cast<std::uint16_t>(static_cast<std::uint32_t>(ends ? 0 : last.value) -
                                               known_bits(index, static_cast<int>(length)));
  const std::uint64_t check = is_dc || advance == 0 ? 0 : advance + 1;
  return length | turn | (ends ? 0 : advance) << 8 | place << 16 | end << 24 |
         std::uint64_t{static_cast<std::uint8_t>(second ? first.value : 0)} << 32 | check << 40 |
         std::uint64_t{rest} << 48;
}

}  // namespace

bool build_ac(const HuffmanSpec& spec, HuffmanTable& table) {
  if (!make_code(spec, table.code)) return false;
  std::array<Single, 1 << kIndexBits> singles;
  make_singles(spec, singles.data(), ac_advance, [](int symbol) { return symbol & 15; });
  constexpr std::uint32_t kMask = (1U << kIndexBits) - 1;
  for (std::uint32_t i = 0; i <= kMask; ++i) {
    const Single& first = singles[i];
    const Single& second = singles[(i << first.length) & kMask];
    table.entries[i] = pack(i, first, makes_pair(first, second) ? &second : nullptr, false);
  }
  return true;
}

bool build_dc(const HuffmanSpec& spec, HuffmanTable& table) {
  if (!make_code(spec, table.code)) return false;
  if (std::any_of(spec.symbols.begin(), spec.symbols.end(), [](int size) { return size > 15; })) return false;
  std::array<Single, 1 << kIndexBits> singles;
  make_singles(
      spec, singles.data(), [](int) { return 1; }, [](int symbol) { return symbol; });
  for (std::uint32_t i = 0; i < singles.size(); ++i) table.entries[i] = pack(i, singles[i], nullptr, true);
  return true;
}

}  // namespace millrace::kernels::jpeg
