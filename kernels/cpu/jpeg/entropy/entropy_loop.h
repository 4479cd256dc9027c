// The entropy decoder's inner loop, for a file that has defined MILLRACE_JPEG_TARGET, the attribute of the instruction
// set, entry_byte(), entry_first(), add_rest(), stays(), advance(), switch_if() and code_length(). Included once by
// each such file, in its anonymous namespace.
//
// A look-up has no branch but the one that leaves for the rare way: where a block ends cannot be foreseen, and a
// mispredicted branch costs as much as two or three look-ups. So DC coefficients come from tables of the same kind as
// AC coefficients, the end of a block is a bit mask, and which table is next is a conditional move.
#pragma once

#define MILLRACE_JPEG_INLINE MILLRACE_JPEG_TARGET inline __attribute__((always_inline))

static_assert(kBlockBytes == 128);

// Leaves at least 56 valid bits.
MILLRACE_JPEG_INLINE void refill(Cursor& cursor) {
  std::uint64_t word;
  std::memcpy(&word, cursor.next, sizeof word);
  cursor.bits |= __builtin_bswap64(word) >> (cursor.valid & 63);
  cursor.next += (cursor.valid ^ 63) >> 3;
  cursor.valid |= 56;
}

MILLRACE_JPEG_INLINE void consume(Cursor& cursor, std::uint64_t bits) {
  cursor.bits <<= bits & 63;
  cursor.valid -= bits;
}

MILLRACE_JPEG_INLINE void store(std::uintptr_t at, std::uint64_t value) {
  const auto narrow = static_cast<std::int16_t>(value);
  std::memcpy(reinterpret_cast<void*>(at), &narrow, sizeof narrow);
}

MILLRACE_JPEG_INLINE void turn(Cursor& cursor) {
  cursor.table = cursor.then->table;
  cursor.then = cursor.then->next;
}

// What an entry stands for, without the turn to the next table. Its bits set in the position: not 0 where one follows.
MILLRACE_JPEG_INLINE std::uint64_t apply(Cursor& cursor, std::uint64_t index) {
  const TableAddress table = cursor.table;
  store(cursor.last + 1 + entry_byte<EntryField::kOffset>(table, index), entry_first(table, index));
  const std::uint64_t length = entry_byte<EntryField::kBits>(table, index);
  // The consumed bits, and above them bits that do not count.
  const std::uint64_t value = add_rest(cursor.bits >> (-length & 63), table, index);
  consume(cursor, length);
  const std::uint64_t end = entry_byte<EntryField::kEnd>(table, index);
  advance(cursor.last, entry_byte<EntryField::kAdvance>(table, index), end);
  store(cursor.last - 1, value);
  return end;
}

// One table entry, of one or two symbols. False: nothing done, the rare way has to.
MILLRACE_JPEG_INLINE bool look_up(Cursor& cursor) {
  const std::uint64_t index = cursor.bits >> (64 - kIndexBits);
  if (__builtin_expect(stays(cursor.last, cursor.table, index), 1)) {
    switch_if(apply(cursor, index), cursor);
    return true;
  }
  const std::uint64_t reached = cursor.last % kBlockBytes + entry_byte<EntryField::kReach>(cursor.table, index);
  if (reached > kBlockBytes || entry_byte<EntryField::kEnd>(cursor.table, index) != 0) return false;
  apply(cursor, index);  // fills the block, which has no EOB then
  turn(cursor);
  return true;
}

struct Symbol {
  int run;
  std::uint64_t value;
  bool has_value;
};

struct Code {
  int length, symbol;  // length 0: there is none
};

// By the canonical codes.
MILLRACE_JPEG_TARGET __attribute__((noinline)) Code find_code(const CanonicalCode& code, std::uint64_t bits) {
  const auto top = static_cast<std::uint32_t>(bits >> 48);
  const int length = code_length(code, top);
  if (length > 16) return {0, 0};
  const int at = code.offset[static_cast<std::size_t>(length)] + static_cast<int>(top >> (16 - length));
  return {length, code.symbols[static_cast<std::size_t>(at & 255)]};
}

// By an entry that leaves.
MILLRACE_JPEG_INLINE Code long_code(const HuffmanTable& table, std::uint64_t entry, std::uint64_t bits) {
  const std::uint64_t further = bits << kIndexBits >> 1 >> (field_of(entry, EntryField::kShift) & 63);
  const LongCode code = table.longer[field_of(entry, EntryField::kLonger) + further];
  return {code.length, code.symbol};
}

// REQUIRES: 31 valid bits.
MILLRACE_JPEG_INLINE Symbol take_symbol(Cursor& cursor, std::uint64_t entry, std::uintptr_t place,
                                        std::uintptr_t& bad) {
  const bool leaves = field_of(entry, EntryField::kReach) == HuffmanTable::kLeave;
  const HuffmanTable& table = table_at(cursor.table);
  Code code = __builtin_expect(leaves, 1) ? long_code(table, entry, cursor.bits) : find_code(table.code, cursor.bits);
  if (__builtin_expect(code.length == 0, 0)) {
    code = {16, 0};
    if (bad == 0) bad = place;
  }
  consume(cursor, static_cast<std::uint64_t>(code.length));
  const int size = code.symbol & 15;
  const std::uint64_t bits = (cursor.bits >> 1) >> (63 - size);
  const auto is_negative = static_cast<std::uint64_t>(~static_cast<std::int64_t>(cursor.bits) >> 63);
  const std::uint64_t value = bits - (is_negative & ((std::uint64_t{1} << size) - 1));
  consume(cursor, static_cast<std::uint64_t>(size));
  return {code.symbol >> 4, value, size != 0};
}

// True: stop.
MILLRACE_JPEG_INLINE bool pass_gate(Cursor& cursor, Cursor& memory) {
  if (memory.notes == nullptr) return true;
  *memory.notes++ = {cursor.last + memory.moved, 8 * reinterpret_cast<std::uintptr_t>(cursor.next) - cursor.valid};
  cursor.table += kGateBefore;
  return false;
}

// One symbol of any kind, the rare way, or a gate. True: stop. What is rare is kept in `memory`.
MILLRACE_JPEG_INLINE bool take_rare(Cursor& cursor, Cursor& memory) {
  if (__builtin_expect(is_gate(cursor.table), 0)) return pass_gate(cursor, memory);
  const std::uint64_t entry = table_at(cursor.table).entries[cursor.bits >> (64 - kIndexBits)];
  refill(cursor);
  const std::uintptr_t end = cursor.last | (kBlockBytes - 1);
  const bool is_dc = cursor.last == end;
  const Symbol symbol = take_symbol(cursor, entry, cursor.last + (is_dc ? 1 : 0), memory.bad);
  const std::uintptr_t at = cursor.last + 1 + (is_dc ? 0 : 2 * static_cast<std::uintptr_t>(symbol.run));
  if (!is_dc && !symbol.has_value && symbol.run != 15) {
    cursor.last = end;
  } else if (!is_dc && at > end) {
    if (memory.bad == 0) memory.bad = cursor.last;
    cursor.last = end;
  } else {
    store(at, symbol.has_value ? symbol.value : 0);
    cursor.last = at + 1;
  }
  if (is_dc || cursor.last == end) turn(cursor);
  return false;
}

MILLRACE_JPEG_INLINE void put_back(const Cursor& state, Cursor& memory) {
  memory.bits = state.bits;
  memory.valid = state.valid;
  memory.next = state.next;
  memory.table = state.table;
  memory.then = state.then;
  memory.last = state.last;
}

MILLRACE_JPEG_TARGET bool take_one(Cursor& cursor) {
  Cursor state = cursor;
  const bool stops = take_rare(state, cursor);
  put_back(state, cursor);
  return stops;
}

MILLRACE_JPEG_TARGET void run_one(Cursor& cursor, int chunks) {
  Cursor state = cursor;
  for (; chunks > 0; --chunks) {
    refill(state);
    if (__builtin_expect(look_up(state) && look_up(state) && look_up(state), 1)) continue;
    if (take_rare(state, cursor)) break;
  }
  put_back(state, cursor);
}

enum class Leaves { kNone, kFirst, kSecond };

// Look-up by look-up: a processor's window of waiting instructions holds few of them. Says which one was rare.
MILLRACE_JPEG_INLINE Leaves take_turns(Cursor& a, Cursor& b) {
  if (!look_up(a)) return Leaves::kFirst;
  if (!look_up(b)) return Leaves::kSecond;
  if (!look_up(a)) return Leaves::kFirst;
  if (!look_up(b)) return Leaves::kSecond;
  if (!look_up(a)) return Leaves::kFirst;
  if (!look_up(b)) return Leaves::kSecond;
  return Leaves::kNone;
}

MILLRACE_JPEG_TARGET void run_two(Cursor& first, Cursor& second, int chunks) {
  Cursor a = first, b = second;
  for (; chunks > 0; --chunks) {
    refill(a);
    refill(b);
    const Leaves leaves = take_turns(a, b);
    if (__builtin_expect(leaves == Leaves::kNone, 1)) continue;
    if (leaves == Leaves::kFirst ? take_rare(a, first) : take_rare(b, second)) break;
  }
  put_back(a, first);
  put_back(b, second);
}

constexpr EntropyKernels kKernels{run_one, run_two, take_one};
