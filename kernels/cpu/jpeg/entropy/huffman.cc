#include "kernels/cpu/jpeg/entropy/huffman.h"

#include <algorithm>

namespace millrace::kernels::jpeg {
namespace {

using Entries = std::array<std::uint64_t, 1 << kIndexBits>;

constexpr int kMostShift = 63;

// Run of 16 zeros, run and value, or end of block (which all other symbols without a value are for libjpeg).
std::uint64_t ac_entry(int symbol) {
  if ((symbol & 15) == 0 && symbol != 0xF0) return in_field(EntryField::kEnd, HuffmanTable::kEndOfBlock);
  const auto advance = static_cast<std::uint64_t>(2 * ((symbol >> 4) + 1));
  return in_field(EntryField::kAdvance, advance) | in_field(EntryField::kOffset, advance - 2) |
         in_field(EntryField::kReach, advance + 1);
}

std::uint64_t dc_entry() {
  return in_field(EntryField::kAdvance, 2) | in_field(EntryField::kEnd, HuffmanTable::kBehindDc);
}

// An entry needs the value's sign bit; of its other bits the index may lack some.
bool fits_index(int length, int size) {
  return length + std::min(size, 1) <= kIndexBits && length + size <= kMostEntryBits;
}

// All indices that begin with `code`.
void add_symbol(Entries& entries, int code, int length, int size, std::uint64_t entry) {
  const auto with_rest = [&](int rest) {
    return entry | in_field(EntryField::kBits, static_cast<std::uint64_t>(length + size)) |
           in_field(EntryField::kRest, static_cast<std::uint16_t>(rest));
  };
  const int rest = -(code << size), negative = 1 - (1 << size);
  const int count = 1 << (kIndexBits - length), half = count / 2;
  std::uint64_t* const first = entries.data() + (code << (kIndexBits - length));
  std::fill_n(first, count, with_rest(rest));
  if (size > 0) std::fill_n(first, half, with_rest(rest + negative));
}

std::uint64_t leave(int further_bits, std::size_t longer) {
  return in_field(EntryField::kReach, HuffmanTable::kLeave) |
         in_field(EntryField::kShift, static_cast<std::uint64_t>(kMostShift - further_bits)) |
         in_field(EntryField::kLonger, longer);
}

// Fills what entries leave out. Codes come by rising length, so those with the same first bits come one after the
// other, the longest last.
class LongCodes {
 public:
  explicit LongCodes(HuffmanTable& table) : table_(table) {
    table_.entries.fill(leave(0, 0));
    table_.longer[0] = {};
  }

  void add(int code, int length, int symbol) {
    const int further = std::max(0, length - kIndexBits);
    const int first = further > 0 ? code >> further : code << (kIndexBits - length);
    if (further > 0 && first == first_)
      widen(further);
    else
      begin(first, further);
    const int count = std::max(1, 1 << (kIndexBits - std::min(length, kIndexBits)));
    for (int i = 0; i < count; ++i) table_.entries[static_cast<std::size_t>(first + i)] = leave(further, begin_);
    table_.longer[begin_ + static_cast<std::size_t>(code & ((1 << further) - 1))] = {static_cast<std::uint8_t>(length),
                                                                                     static_cast<std::uint8_t>(symbol)};
  }

 private:
  void begin(int first, int further) {
    first_ = further > 0 ? first : -1;
    further_ = further;
    begin_ = end_;
    end_ += std::size_t{1} << further;
    std::fill(table_.longer.begin() + static_cast<std::ptrdiff_t>(begin_),
              table_.longer.begin() + static_cast<std::ptrdiff_t>(end_), LongCode{});
  }

  // Of the codes with the same first bits: more bits to tell them apart.
  void widen(int further) {
    const std::size_t times = std::size_t{1} << (further - further_), count = end_ - begin_;
    for (std::size_t i = times * count; i-- > 0;) table_.longer[begin_ + i] = table_.longer[begin_ + i / times];
    end_ = begin_ + times * count;
    further_ = further;
  }

  HuffmanTable& table_;
  int first_ = -1, further_ = 0;     // of the codes added last; -1: the index tells them from all others
  std::size_t begin_ = 0, end_ = 1;  // theirs in table_.longer
};

// An entry a symbol where the index is long enough. `entry_of` and `size_of` say what a symbol means.
template <typename EntryOf, typename SizeOf>
void add_symbols(const HuffmanSpec& spec, HuffmanTable& table, EntryOf entry_of, SizeOf size_of) {
  LongCodes longer(table);
  int code = 0, at = 0;
  for (int length = 1; length <= kMostCodeBits; ++length, code <<= 1) {
    for (int i = 0; i < spec.counts[static_cast<std::size_t>(length - 1)]; ++i, ++at, ++code) {
      const int symbol = spec.symbols[static_cast<std::size_t>(at)];
      if (fits_index(length, size_of(symbol)))
        add_symbol(table.entries, code, length, size_of(symbol), entry_of(symbol));
      else
        longer.add(code, length, symbol);
    }
  }
}

// `first`, all of whose bits are `bits`, and the symbol after it.
std::uint64_t pair(std::uint64_t first, std::uint64_t bits, std::uint64_t second) {
  constexpr std::uint64_t kOffset = in_field(EntryField::kOffset, 255);
  const std::uint64_t length = field_of(first, EntryField::kBits), advance = field_of(first, EntryField::kAdvance);
  const bool ends = field_of(second, EntryField::kEnd) != 0;
  const std::uint64_t sum = second + in_field(EntryField::kBits, length) +
                            (ends ? in_field(EntryField::kReach, 1) : in_field(EntryField::kAdvance, advance)) +
                            in_field(EntryField::kReach, advance) -
                            in_field(EntryField::kRest, bits << field_of(second, EntryField::kBits));
  const std::uint64_t value = (field_of(first, EntryField::kRest) + bits) & 255;
  return (sum & ~kOffset) | (first & kOffset) | in_field(EntryField::kFirst, value);
}

// Two symbols an entry where the index holds the first one whole and of the second one the code and the sign, and where
// both values fit into 8 bytes from the first on.
void add_pairs(Entries& entries) {
  constexpr std::uint64_t kFurthest = 6;
  const Entries singles = entries;
  for (std::size_t i = 0, count = 1; i < singles.size(); i += count) {
    const std::uint64_t first = singles[i], length = field_of(first, EntryField::kBits);
    count = length < kIndexBits ? std::size_t{1} << (kIndexBits - length) : 1;
    if (length == 0) count = 1;
    if (length == 0 || length >= kIndexBits || field_of(first, EntryField::kEnd) != 0) continue;
    const std::size_t unknown = (std::size_t{1} << length) - 1;
    for (std::size_t j = 0; j < count; ++j) {
      const std::uint64_t second = singles[j << length], behind = field_of(second, EntryField::kBits);
      const bool is_known = behind != 0 && second == singles[j << length | unknown];
      if (is_known && length + behind <= kMostEntryBits && field_of(second, EntryField::kAdvance) <= kFurthest)
        entries[i + j] = pair(first, i >> (kIndexBits - length), second);
    }
  }
}

}  // namespace

bool build_ac(const HuffmanSpec& spec, HuffmanTable& table) {
  if (!make_code(spec, TableKind::kAc, table.code)) return false;
  add_symbols(spec, table, ac_entry, [](int symbol) { return symbol & 15; });
  add_pairs(table.entries);
  return true;
}

bool build_dc(const HuffmanSpec& spec, HuffmanTable& table) {
  if (!make_code(spec, TableKind::kDc, table.code)) return false;
  add_symbols(
      spec, table, [](int) { return dc_entry(); }, [](int symbol) { return symbol; });
  return true;
}

}  // namespace millrace::kernels::jpeg
