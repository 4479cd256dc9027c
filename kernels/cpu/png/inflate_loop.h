// The inner loop of inflating, for a file that has defined MILLRACE_PNG_TARGET, the attribute of the instruction set.
// Included once by each such file, in its anonymous namespace.
//
// What takes the time in photographs is that each look-up waits for the one before, and that nobody can foresee whether
// a literal or a match comes next. So a look-up gives two literals where it can, and the match behind them, too; the
// next one begins before a match is copied.
//
// Bits are refilled eight bytes at a time, without a branch: those above the valid ones are there already where they
// are read again. A step takes 48 bits at most, so what is left does for looking up the next entry before the refill.
#pragma once

#define MILLRACE_PNG_INLINE MILLRACE_PNG_TARGET inline __attribute__((always_inline))

static_assert(std::endian::native == std::endian::little);

// What the loop holds in registers.
struct Cursor {
  const std::uint8_t* in;
  std::uint8_t* out;
  std::uint64_t bits;
  std::uint64_t count;
};

// Leaves at least 56 valid bits.
MILLRACE_PNG_INLINE void refill(Cursor& at) {
  std::uint64_t word;
  std::memcpy(&word, at.in, sizeof word);
  at.bits |= word << (at.count & 63);
  at.in += 7 - (at.count >> 3 & 7);
  at.count |= 56;
}

MILLRACE_PNG_INLINE void take(Cursor& at, std::uint32_t entry) {
  at.bits >>= entry & 63;
  at.count -= entry;
}

// A length or distance: its least value and the extra bits behind its code.
MILLRACE_PNG_INLINE std::uint32_t take_value(Cursor& at, std::uint32_t entry) {
  const std::uint64_t all = at.bits & ((std::uint64_t{1} << (entry & 63)) - 1);
  take(at, entry);
  return (entry >> 16) + static_cast<std::uint32_t>(all >> (entry >> 8 & 15));
}

// From the table behind the main one that `entry` leads to.
MILLRACE_PNG_INLINE std::uint32_t look_further(Cursor& at, const std::uint32_t* table, std::uint32_t entry) {
  take(at, entry);
  return table[(entry >> 16) + (at.bits & ((1U << (entry >> 8 & 15)) - 1))];
}

MILLRACE_PNG_INLINE void put_literals(Cursor& at, std::uint32_t entry) {
  const auto bytes = static_cast<std::uint16_t>(entry >> 16);
  std::memcpy(at.out, &bytes, sizeof bytes);
  at.out += entry >> 6 & 3;
}

MILLRACE_PNG_INLINE void copy_16(std::uint8_t* to, const std::uint8_t* from) {
  using Bytes = std::uint8_t __attribute__((vector_size(16)));
  Bytes bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  std::memcpy(to, &bytes, sizeof bytes);
}

// Bytes that repeat, `distance` at a time, which is less than a copy's 16.
MILLRACE_PNG_INLINE void repeat(std::uint8_t* to, std::uint32_t distance, const std::uint8_t* end) {
  if (distance == 1) {
    std::memset(to, to[-1], static_cast<std::size_t>(end - to));
    return;
  }
  const std::uint8_t* const from = to - distance;
  const std::uint32_t period = (15 / distance + 1) * distance;  // 16 to 30
  for (std::uint32_t i = 0; i < period; ++i) to[i] = from[i];
  for (to += period; to < end; to += 16) copy_16(to, to - period);
}

MILLRACE_PNG_INLINE void copy_match(std::uint8_t* to, std::uint32_t distance, std::uint32_t length) {
  const std::uint8_t* const end = to + length;
  const std::uint8_t* from = to - distance;
  if (__builtin_expect(distance < 16, 0)) {
    if (distance < length) return repeat(to, distance, end);
    return copy_16(to, from);
  }
  copy_16(to, from);
  for (to += 16, from += 16; to < end; to += 16, from += 16) copy_16(to, from);
}

MILLRACE_PNG_TARGET InflateStatus inflate_symbols(const InflateCodes& codes, InflateBits& kept, InflateInput& in,
                                                  InflateOutput& out) {
  constexpr std::uint64_t kLiteralMask = (1U << kLiteralBits) - 1, kDistanceMask = (1U << kDistanceBits) - 1;
  const std::uint32_t* const literals = codes.literals.data();
  const std::uint32_t* const distances = codes.distances.data();
  const std::uint8_t* const in_end = in.is_last ? in.end + 8 : in.end - kInflateInputSlack;
  const std::uint8_t* const out_end = out.end;
  Cursor at{in.next, out.next, kept.bits, kept.count};
  refill(at);
  std::uint32_t entry = literals[at.bits & kLiteralMask];
  InflateStatus status = InflateStatus::kOdd;
  while (true) {
    if (at.in > in_end || at.out >= out_end) {
      if (at.out >= out_end) status = InflateStatus::kFull;
      if (at.out < out_end && !in.is_last) status = InflateStatus::kHungry;
      break;
    }
    refill(at);
    if (__builtin_expect((entry & kLeadsOn) == kLeadsOn, 0)) entry = look_further(at, literals, entry);
    if (__builtin_expect((entry & kLeadsOn) == kEndsBlock, 0)) {
      take(at, entry);
      status = InflateStatus::kEnd;
      break;
    }
    if (__builtin_expect((entry & kLeadsOn) == kInvalid, 0)) break;
    std::uint32_t length = entry >> 8 & 15;
    if ((entry & kRare) != 0) {
      length = take_value(at, entry);
    } else {
      put_literals(at, entry);
      take(at, entry);
      if ((entry & kNoMatch) != 0) {
        entry = literals[at.bits & kLiteralMask];
        if ((entry & (kNoMatch | kRare)) != kNoMatch) continue;
        put_literals(at, entry);
        take(at, entry);
        entry = literals[at.bits & kLiteralMask];
        continue;
      }
    }
    std::uint32_t code = distances[at.bits & kDistanceMask];
    if (__builtin_expect((code & kLeadsOn) == kLeadsOn, 0)) code = look_further(at, distances, code);
    if (__builtin_expect((code & kRare) != 0, 0)) break;
    const std::uint32_t distance = take_value(at, code);
    entry = literals[at.bits & kLiteralMask];
    if (__builtin_expect(distance > static_cast<std::uint64_t>(at.out - out.begin), 0)) break;
    copy_match(at.out, distance, length);
    at.out += length;
  }
  in.next = at.in;
  out.next = at.out;
  kept = {at.bits, at.count};
  return status;
}
