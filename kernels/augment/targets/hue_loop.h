// Hue in vectors, for a file that has defined MILLRACE_AUGMENT_TARGET, kLanes, Register, reciprocal()
// widen(), multiply_halves() and look_up(). Included once by each such file, in its anonymous namespace.
//
// The reference divides and rounds to bytes. Here quotients are integers with their remainders, from approximate
// reciprocals that are corrected: H is 42.5 (base range + difference) / range, where base is 0, 2 or 4 by the largest
// channel, and S is 255 range / largest. Where H has no remainder the reference's floats may be a little less, which
// kBelow says for each of the 256 values. With n the numerator of H's place in its sixth, of 85, the three values of a
// colour are V (255 - S) / 255, V (21675 - S n) / 21675 and V (21675 - S (85 - n)) / 21675, rounded; none is a half.
#pragma once

typedef int Ints __attribute__((vector_size(4 * kLanes)));
typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef Byte Bytes __attribute__((vector_size(kLanes)));

struct BelowTable {
  alignas(32) std::uint32_t word[8];
};

constexpr BelowTable make_below_table() {
  BelowTable table{};
  for (int h = 0; h < 255; ++h) table.word[h / 32] |= static_cast<std::uint32_t>(falls_below(h)) << (h % 32);
  return table;
}

constexpr BelowTable kBelow = make_below_table();

// The word of the table that holds each of these values.
MILLRACE_AUGMENT_INLINE Ints word_of(Ints value) {
  return reinterpret_cast<Ints>(look_up(kBelow.word, reinterpret_cast<Register>(value >> 5)));
}

MILLRACE_AUGMENT_INLINE Ints load(const Byte* at) {
  return reinterpret_cast<Ints>(widen(at));
}

// REQUIRES: neither is negative or has more than 15 bits.
MILLRACE_AUGMENT_INLINE Ints times(Ints a, Ints b) {
  return reinterpret_cast<Ints>(multiply_halves(reinterpret_cast<Register>(a), reinterpret_cast<Register>(b)));
}

MILLRACE_AUGMENT_INLINE void store(Ints values, Byte* at) {
  const Bytes bytes = __builtin_convertvector(values, Bytes);
  std::memcpy(at, &bytes, sizeof bytes);
}

MILLRACE_AUGMENT_INLINE Floats to_floats(Ints values) {
  return __builtin_convertvector(values, Floats);
}

MILLRACE_AUGMENT_INLINE Ints to_ints(Floats values) {
  return __builtin_convertvector(values, Ints);
}

struct Quotient {
  Ints value, rest;
};

// Of quotients up to 255. What is added to the reciprocal is more than it may lack, and less than makes it 2 too many.
MILLRACE_AUGMENT_INLINE Quotient divide(Ints numerator, Ints divisor) {
  const Floats more = to_floats(numerator) * reciprocal(to_floats(divisor)) * 1.001F;
  const Ints value = to_ints(more);
  const Ints rest = numerator - times(value, divisor);
  const Ints is_too_many = rest < 0;  // -1 where it is
  return {value + is_too_many, rest + (is_too_many & divisor)};
}

MILLRACE_AUGMENT_INLINE Ints rounded(Ints numerator, float part) {
  return to_ints(to_floats(numerator) * part + 0.5F);
}

MILLRACE_AUGMENT_TARGET void hue(Byte shift, const Planes& planes, std::size_t padded) {
  for (std::size_t at = 0; at < padded; at += kLanes) {
    const Ints r = load(planes.plane[0] + at), g = load(planes.plane[1] + at), b = load(planes.plane[2] + at);
    const Ints rg_most = r > g ? r : g, rg_least = r < g ? r : g;
    const Ints most = rg_most > b ? rg_most : b, least = rg_least < b ? rg_least : b;
    const Ints range = most - least;
    const Ints divisor = range - (range == 0);
    const Ints is_r = r == most, is_g = g == most;
    const Ints difference = is_r ? g - b : is_g ? b - r : r - g;
    const Ints sixths = difference + (is_r ? range & 0 : is_g ? divisor << 1 : divisor << 2);
    const Ints numerator = sixths + ((sixths < 0) & ((divisor << 2) + (divisor << 1)));
    const Quotient h = divide(times(numerator, numerator * 0 + 85), divisor << 1);
    const Ints below = (word_of(h.value) >> (h.value & 31)) & 1 & (h.rest == 0);
    const Ints s = divide((range << 8) - range, most - (most == 0)).value;

    const Ints turned = (h.value - below + shift) & 0xFF;
    const Ints sector = times(turned, turned * 0 + 1543) >> 16;  // 2 turned / 85
    const Ints n = (turned << 1) - times(sector, sector * 0 + 85);
    const Ints p = rounded(times(most, 255 - s), 1.0F / 255.0F);
    const Ints q = rounded(times(most, 21675 - times(s, n)), 1.0F / 21675.0F);
    const Ints t = rounded(times(most, 21675 - times(s, 85 - n)), 1.0F / 21675.0F);
    const Ints is_0 = (sector == 0) | (sector == 6), is_1 = sector == 1, is_2 = sector == 2;
    const Ints is_3 = sector == 3, is_4 = sector == 4, is_5 = sector == 5;
    // Of a grey pixel S is 0, and p, q and t are V.
    store((is_0 | is_5) ? most : is_1 ? q : is_4 ? t : p, planes.plane[0] + at);
    store((is_1 | is_2) ? most : is_3 ? q : is_0 ? t : p, planes.plane[1] + at);
    store((is_3 | is_4) ? most : is_5 ? q : is_2 ? t : p, planes.plane[2] + at);
  }
}
