// Huffman tables packed for decoding: an AC entry gives up to two symbols with their values; small enough that two AC
// tables and what is used of two DC tables (8 KiB each) stay in a first-level cache. Values.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/jpeg/canonical_code.h"

namespace millrace::kernels::jpeg {

inline constexpr int kIndexBits = 10;      // index of a table
inline constexpr int kMostEntryBits = 18;  // that an entry may consume: three of them fit into one refill

// The fields of a look-up's result, which are bytes of a number, from the low one; kRest is its upper two. Positions
// are bytes of a block, 2 a coefficient. With one symbol both values have one place, and the last is stored over the
// first. With EOB the last value is 0, at the block's end.
//
// Where the index does not hold a code and its value's sign bit, the entry leaves: kBits is 0 and kReach kLeave. Such a
// symbol, in one of 90 look-ups, needs no search through the codes.
enum class EntryField : int {
  kBits,     // consumed
  kAdvance,  // added to the position
  kOffset,   // of the first value
  kEnd,      // bits set in the position of the last byte written: 127 with EOB, which ends the block; 1, which is set
             // anyway, after a DC coefficient; otherwise 0. Where it is not 0 the next look-up takes the other table
  kFirst,    // the first value (8 bits, signed) where there are two, at most 6 bytes apart; otherwise 0
  kReach,    // the entry applies as long as this plus the position of the last byte written stays below 128. At 128 the
             // block is full: without EOB the entry applies, and the next look-up takes the other table. Beyond, the
             // code is not in the table, or the run leaves the block
  kRest,     // the last value less all consumed bits that the index has, shifted to their place, modulo 65536: the last
             // value is this plus the consumed bits, without a mask or a branch for the sign
  // Of an entry that leaves:
  kShift = kAdvance,  // 63 less how many further bits tell the codes apart that begin so, 6 at most
  kLonger = kRest,    // where the codes begin in `longer`, to be indexed by these bits
};

constexpr int shift_of(EntryField field) {
  return 8 * static_cast<int>(field);
}
constexpr std::uint64_t in_field(EntryField field, std::uint64_t value) {
  return value << shift_of(field);
}
constexpr std::uint64_t field_of(std::uint64_t entry, EntryField field) {
  return field == EntryField::kRest ? entry >> shift_of(field) : entry >> shift_of(field) & 255;
}

// Length 0: there is none.
struct LongCode {
  std::uint8_t length = 0, symbol = 0;
};
// One for "none", one a symbol, and 64 wherever codes of two lengths, or the longest codes and none, begin with the
// same bits: lengths rise from code to code, so that is at most six times.
inline constexpr std::size_t kMostLongCodes = 1 + 256 + 6 * 64;

struct HuffmanTable {
  static constexpr std::uint8_t kLeave = 128;  // more than any entry that applies, and it crosses one end of a block
  static constexpr std::uint8_t kEndOfBlock = 127;
  static constexpr std::uint8_t kBehindDc = 1;
  alignas(64) std::array<std::uint64_t, 1 << kIndexBits> entries;
  std::array<LongCode, kMostLongCodes> longer;
  CanonicalCode code;  // for what the entries leave out
};

// Where a table's entries are, or a gate.
using TableAddress = std::uintptr_t;

inline TableAddress address_of(const HuffmanTable& table) {
  return reinterpret_cast<TableAddress>(table.entries.data());
}

// REQUIRES: no gate's.
inline const HuffmanTable& table_at(TableAddress address) {
  return *reinterpret_cast<const HuffmanTable*>(address);
}

// A gate stands before a block's DC table and consumes nothing: all of its look-ups go the rare way, which notes the
// place and goes on with the table, or stops. So places in the data are found without a cost elsewhere. It is the
// table's own address less four: look-ups take kAdvance for kReach then, which is 2 or more in all of a DC table's
// entries, and before a block that is as if the code were not in the table. So a gate takes no memory, and no room in a
// cache: what it looks at is in the line that the table is looked up in next.
inline constexpr TableAddress kGateBefore = 4;

inline TableAddress gate_before(const HuffmanTable& dc) {
  return address_of(dc) - kGateBefore;
}

inline bool is_gate(TableAddress address) {
  return address % alignof(HuffmanTable) != 0;
}

// false: make_code() refuses the table, which means nothing then.
bool build_ac(const HuffmanSpec& spec, HuffmanTable& table);
bool build_dc(const HuffmanSpec& spec, HuffmanTable& table);

}  // namespace millrace::kernels::jpeg
