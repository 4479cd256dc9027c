// The entropy decoder's inner loop, for a file that has defined MILLRACE_JPEG_TARGET, the attribute of the instruction
// set, switch_if() and code_length(). Included once by each such file, in its anonymous namespace.
//
// A look-up has no branch but the one that leaves for the rare way: where a block ends cannot be foreseen, and a
// mispredicted branch costs as much as two or three look-ups. So DC coefficients come from tables of the same kind as
// AC coefficients, the end of a block is a bit mask, and which table is next is a conditional move. Entries are read
// byte by byte at the address of the index, so the processor is little-endian.
#pragma once

#define MILLRACE_JPEG_INLINE MILLRACE_JPEG_TARGET inline __attribute__((always_inline))

static_assert(kBlockBytes == 128);
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

// Leaves at least 56 valid bits.
MILLRACE_JPEG_INLINE void refill(Cursor& cursor) {
  std::uint64_t word;
  std::memcpy(&word, cursor.next, sizeof word);
  cursor.bits |= __builtin_bswap64(word) >> (~cursor.used & 63);
  const std::uint64_t used = cursor.used & 63;
  cursor.next += used >> 3;
  cursor.used = used & 7;
}

MILLRACE_JPEG_INLINE void consume(Cursor& cursor, std::uint64_t bits) {
  cursor.bits <<= bits & 63;
  cursor.used += bits & 63;
}

struct Symbol {
  int run;
  int value;
  int size;
};

// The rare way for any code. REQUIRES: 31 valid bits.
MILLRACE_JPEG_INLINE Symbol take_symbol(Cursor& cursor, const CanonicalCode& code, bool is_dc) {
  const auto top = static_cast<std::uint32_t>(cursor.bits >> 48);
  int length = code_length(code, top);
  if (length > 16) {
    length = 16;
    if (cursor.bad == 0) cursor.bad = cursor.last + (is_dc ? 1 : 0);
  }
  const int at = code.offset[static_cast<std::size_t>(length)] + static_cast<int>(top >> (16 - length));
  const int symbol = code.symbols[static_cast<std::size_t>(at & 255)];
  consume(cursor, static_cast<std::uint64_t>(length));
  const int size = symbol & 15;
  const int bits = static_cast<int>((cursor.bits >> 1) >> (63 - size));
  const int value = bits - (static_cast<std::int64_t>(cursor.bits) < 0 ? 0 : (1 << size) - 1);
  consume(cursor, static_cast<std::uint64_t>(size));
  return {symbol >> 4, value, size};
}

MILLRACE_JPEG_INLINE void store(std::uintptr_t at, int value) {
  const auto narrow = static_cast<std::int16_t>(value);
  std::memcpy(reinterpret_cast<void*>(at), &narrow, sizeof narrow);
}

MILLRACE_JPEG_INLINE void turn(Cursor& cursor) {
  cursor.table = cursor.then->table;
  cursor.then = cursor.then->next;
}

// True: stop.
MILLRACE_JPEG_INLINE bool pass_gate(Cursor& cursor) {
  if (cursor.table->gate == Gate::kStop) return true;
  *cursor.notes++ = {cursor.last, 8 * reinterpret_cast<std::uintptr_t>(cursor.next) + (cursor.used & 63)};
  cursor.table = cursor.table->behind;
  return false;
}

// One symbol of any kind, the rare way, or a gate. True: stop.
__attribute__((noinline)) MILLRACE_JPEG_TARGET bool take_one(Cursor& state) {
  if (state.table->gate != Gate::kNone) return pass_gate(state);
  Cursor cursor = state;
  refill(cursor);
  const std::uintptr_t end = cursor.last | (kBlockBytes - 1);
  const bool is_dc = cursor.last == end;
  const Symbol symbol = take_symbol(cursor, cursor.table->code, is_dc);
  if (is_dc) {
    store(cursor.last + 1, symbol.value);
    cursor.last += 2;
    turn(cursor);
  } else if (symbol.size == 0 && symbol.run != 15) {
    cursor.last = end;
    turn(cursor);
  } else {
    const std::uintptr_t at = cursor.last + 1 + 2 * static_cast<std::uintptr_t>(symbol.run);
    if (at > end) {
      if (cursor.bad == 0) cursor.bad = cursor.last;
      cursor.last = end;
    } else {
      store(at, symbol.size == 0 ? 0 : symbol.value);
      cursor.last = at + 1;
    }
    if (cursor.last == end) turn(cursor);
  }
  state = cursor;
  return false;
}

// One table entry, of one or two symbols. False: nothing done, the rare way has to.
MILLRACE_JPEG_INLINE bool look_up(Cursor& cursor) {
  const auto* const at =
      reinterpret_cast<const std::uint8_t*>(cursor.table->entries.data() + (cursor.bits >> (64 - kIndexBits)));
  std::uint8_t reached = static_cast<std::uint8_t>(cursor.last | kBlockBytes);
  if (__builtin_expect(__builtin_add_overflow(reached, at[5], &reached), 0)) return false;
  std::uint32_t head;
  std::uint16_t rest;
  std::memcpy(&head, at, sizeof head);
  const std::int16_t first = static_cast<std::int8_t>(at[4]);
  std::memcpy(&rest, at + 6, sizeof rest);
  // The consumed bits, and above them bits that do not count.
  const auto last = static_cast<std::uint16_t>(rest + (cursor.bits >> (-head & 63)));
  cursor.bits <<= head & 63;
  cursor.used += head;  // counts modulo 64, and the bits above the low six are a multiple of 64
  std::memcpy(reinterpret_cast<void*>(cursor.last + 1 + at[2]), &first, sizeof first);
  cursor.last = (cursor.last + at[1]) | at[3];
  std::memcpy(reinterpret_cast<void*>(cursor.last - 1), &last, sizeof last);
  switch_if(head, cursor);
  return true;
}

// The rare way works on a state in memory, so that the state itself stays in registers.
MILLRACE_JPEG_INLINE bool take_rare(Cursor& cursor, Cursor& memory) {
  const std::uintptr_t bad = memory.bad;
  Note* const notes = memory.notes;
  memory = cursor;
  memory.bad = bad;
  memory.notes = notes;
  const bool stops = take_one(memory);
  cursor = memory;
  return stops;
}

MILLRACE_JPEG_TARGET void run_one(Cursor& cursor, int chunks) {
  Cursor state = cursor;
  for (int i = 0; i < chunks; ++i) {
    refill(state);
    if (__builtin_expect(look_up(state) && look_up(state) && look_up(state), 1)) continue;
    if (take_rare(state, cursor)) break;
  }
  state.bad = cursor.bad;
  state.notes = cursor.notes;
  cursor = state;
}

// The streams take turns look-up by look-up: a processor's window of waiting instructions holds few look-ups.
MILLRACE_JPEG_TARGET void run_two(Cursor& first, Cursor& second, int chunks) {
  Cursor a = first, b = second;
  for (int i = 0; i < chunks; ++i) {
    refill(a);
    refill(b);
    for (int k = 0; k < 3; ++k) {
      if (!look_up(a)) {
        if (take_rare(a, first)) i = chunks;
        break;
      }
      if (!look_up(b)) {
        if (take_rare(b, second)) i = chunks;
        break;
      }
    }
  }
  a.bad = first.bad;
  b.bad = second.bad;
  a.notes = first.notes;
  b.notes = second.notes;
  first = a;
  second = b;
}

constexpr EntropyKernels kKernels{run_one, run_two, take_one};
