// The entropy decoder's inner loop, for a file that has defined MILLRACE_JPEG_TARGET: the attribute of the instruction
// set. Included once by each such file, in its anonymous namespace.
//
// One compare a look-up catches everything rare: output + advance >= limit means end of block, code not in the table,
// block full, or nonsense. Entries are read byte by byte at the address of the index, so the processor is
// little-endian.
#pragma once

#define MILLRACE_JPEG_INLINE MILLRACE_JPEG_TARGET inline __attribute__((always_inline))

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
MILLRACE_JPEG_INLINE Symbol take_symbol(Cursor& cursor, const CanonicalCode& code, char* block_end) {
  const auto top = static_cast<std::uint32_t>(cursor.bits >> 48);
  int length = 1;
  for (const std::uint32_t limit : code.limit) length += top >= limit;
  if (length > 16) {
    length = 16;
    if (cursor.bad == nullptr) cursor.bad = block_end;
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

MILLRACE_JPEG_INLINE void store(char* at, int value) {
  const auto narrow = static_cast<std::int16_t>(value);
  std::memcpy(at, &narrow, sizeof narrow);
}

// One AC symbol. True: the block is complete.
MILLRACE_JPEG_INLINE bool take_ac(Cursor& cursor) {
  const Symbol symbol = take_symbol(cursor, cursor.ac->code, cursor.limit);
  if (symbol.size == 0 && symbol.run != 15) return true;
  char* const at = cursor.out + 2 * symbol.run;
  if (at >= cursor.limit) {
    if (cursor.bad == nullptr) cursor.bad = cursor.limit;
    return true;
  }
  store(at, symbol.size == 0 ? 0 : symbol.value);
  cursor.out = at + 2;
  return cursor.out == cursor.limit;
}

// The rare ways work on a copy of the state that has an address, so that the state itself stays in registers.
__attribute__((noinline)) MILLRACE_JPEG_TARGET bool take_ac_rare(Cursor* cursor) {
  return take_ac(*cursor);
}
__attribute__((noinline)) MILLRACE_JPEG_TARGET int take_dc_rare(Cursor* cursor, const DcTable* table) {
  return take_symbol(*cursor, table->code, cursor->limit + kBlockBytes).value;
}

MILLRACE_JPEG_INLINE void begin_block(Cursor& cursor) {
  refill(cursor);
  const McuBlock& block = *cursor.following;
  cursor.ac = block.ac;
  cursor.following = block.next;
  const std::uint32_t entry = block.dc->entries[cursor.bits >> (64 - kDcBits)];
  int value;
  if (__builtin_expect(entry == 0, 0)) {
    Cursor copy = cursor;
    value = take_dc_rare(&copy, block.dc);
    cursor = copy;
  } else {
    const std::uint64_t length = entry & 63, missing = entry >> 8 & 255;
    const std::uint64_t all = cursor.bits >> (64 - length);
    value = (static_cast<std::int32_t>(entry) >> 16) + static_cast<int>(all & ((std::uint64_t{1} << missing) - 1));
    consume(cursor, length);
  }
  store(cursor.limit, value);
  cursor.out = cursor.limit + 2;
  cursor.limit += kBlockBytes;
}

// Bytes 0-3 of an entry and the two values behind them.
struct Entry {
  const std::uint8_t* at;
  std::uint64_t all;
  MILLRACE_JPEG_INLINE explicit Entry(const Cursor& cursor)
      : at(reinterpret_cast<const std::uint8_t*>(cursor.ac->entries.data() + (cursor.bits >> (64 - kAcBits)))) {
    std::memcpy(&all, at, sizeof all);
  }
  MILLRACE_JPEG_INLINE std::uint16_t first() const { return static_cast<std::uint16_t>(all >> 32); }
};

// The values of one entry. False: something rare, nothing consumed.
MILLRACE_JPEG_INLINE bool take_entry(Cursor& cursor, const Entry& entry) {
  char* const end = cursor.out + entry.at[1];
  if (__builtin_expect(end >= cursor.limit, 0)) return false;
  std::uint16_t first, rest;
  std::memcpy(&first, entry.at + 4, sizeof first);
  std::memcpy(&rest, entry.at + 6, sizeof rest);
  const auto last = static_cast<std::uint16_t>(rest + (cursor.bits >> (entry.at[3] & 63)));
  cursor.bits <<= entry.all & 63;
  cursor.used += entry.all;  // counts modulo 64, and the bits above the low six are a multiple of 64
  std::memcpy(cursor.out + entry.at[2], &first, sizeof first);
  std::memcpy(end - 2, &last, sizeof last);
  cursor.out = end;
  return true;
}

// `entry` was not taken: the block ends here, or a symbol is decoded the rare way.
MILLRACE_JPEG_INLINE void take_event(Cursor& cursor, const Entry& entry) {
  char* const at = cursor.out + entry.at[2];
  const int value_bytes = entry.first() != 0 ? 2 : 0;
  // A symbol before EOB must not fill the block, for then no EOB follows.
  if (__builtin_expect((entry.all & AcTable::kEndOfBlock) != 0 && at + value_bytes < cursor.limit, 1)) {
    const std::uint16_t first = entry.first();
    std::memcpy(at, &first, sizeof first);
    consume(cursor, entry.all);
  } else {
    refill(cursor);
    Cursor copy = cursor;
    const bool complete = take_ac_rare(&copy);
    cursor = copy;
    if (!complete) return;
  }
  begin_block(cursor);
}

MILLRACE_JPEG_INLINE void run_chunk(Cursor& state) {
  Cursor cursor = state;
  refill(cursor);
  for (int look_up = 0; look_up < 3; ++look_up) {
    const Entry entry(cursor);
    if (!take_entry(cursor, entry)) {
      take_event(cursor, entry);
      break;
    }
  }
  state = cursor;
}

MILLRACE_JPEG_TARGET void run_one(Cursor& cursor, int chunks) {
  Cursor state = cursor;
  for (int i = 0; i < chunks; ++i) run_chunk(state);
  cursor = state;
}

MILLRACE_JPEG_TARGET void run_two(Cursor& first, Cursor& second, int chunks) {
  Cursor a = first, b = second;
  for (int i = 0; i < chunks; ++i) {
    run_chunk(a);
    run_chunk(b);
  }
  first = a;
  second = b;
}

MILLRACE_JPEG_TARGET void start(const std::uint8_t* data, std::int64_t bit, const McuBlock* first, char* out,
                                Cursor& cursor) {
  cursor = {.used = 63, .next = data + (bit >> 3), .following = first, .limit = out};
  refill(cursor);
  consume(cursor, static_cast<std::uint64_t>(bit & 7));
  begin_block(cursor);
}

constexpr EntropyKernels kKernels{start, run_one, run_two};
