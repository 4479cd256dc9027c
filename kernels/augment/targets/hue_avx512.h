// Hue with AVX-512: hue_loop.h says what is computed, here in 16-bit halves, 64 pixels at a time. Included by
// loops_avx512.h.
//
// A quotient is the upper half of a product with a reciprocal from a table, at most 1 too small, which its remainder
// tells. H is that of 85 times the distance of the two other channels by twice the range, added to a multiple of 85
// or subtracted from it. The smallest value is V - V S / 255, where V S is 255 range without the remainder of S: that
// is the old one, and 1 where the remainder is half of 255 or more. What H and the shift say of the new colour are
// tables too: in which of the three channels V is and in which the value between V and the smallest, and how far that
// one is, n or 85 - n.
#pragma once

struct HueTables {
  // Reciprocals: 65536 / V and 65536 / 2 range, low and high bytes.
  alignas(64) Byte by_value[2][256], by_range[2][256];
  alignas(64) Byte part[512], place[512];  // by H and the shift, which do not wrap
  alignas(64) Byte below[64], bit[64];
};

enum Place : unsigned {
  kRedIsMost = 1,
  kGreenIsMost = 2,
  kBlueIsMost = 4,
  kRedIsPart = 8,
  kGreenIsPart = 16,
  kBlueIsPart = 32
};

constexpr HueTables make_hue_tables() {
  constexpr Byte kPlaces[] = {kRedIsMost | kGreenIsPart,  kGreenIsMost | kRedIsPart, kGreenIsMost | kBlueIsPart,
                              kBlueIsMost | kGreenIsPart, kBlueIsMost | kRedIsPart,  kRedIsMost | kBlueIsPart};
  HueTables tables{};
  for (unsigned i = 0; i < 256; ++i) {
    const unsigned of_value = i < 2 ? i * 65535 : 65536 / i, of_range = i == 0 ? 0 : 32768 / i;
    tables.by_value[0][i] = static_cast<Byte>(of_value & 255);
    tables.by_value[1][i] = static_cast<Byte>(of_value >> 8);
    tables.by_range[0][i] = static_cast<Byte>(of_range & 255);
    tables.by_range[1][i] = static_cast<Byte>(of_range >> 8);
    const unsigned sector = 2 * i / 85, n = 2 * i - 85 * sector;
    for (unsigned turn = 0; turn < 512; turn += 256) {
      tables.part[turn + i] = static_cast<Byte>(sector % 2 == 1 ? n : 85 - n);
      tables.place[turn + i] = kPlaces[sector % 6];
    }
    if (i < 255 && falls_below(static_cast<int>(i))) tables.below[i / 8] |= static_cast<Byte>(1U << (i % 8));
    if (i < 64) tables.bit[i] = static_cast<Byte>(1U << (i % 8));
  }
  return tables;
}

constexpr HueTables kHueTables = make_hue_tables();

// A factor of which the compiler does not know that shifts and sums would do as well, which would take longer here.
MILLRACE_AUGMENT_INLINE __m512i opaque(int value) {
  __m512i halves = all_halves(value);
  asm("" : "+v"(halves));
  return halves;
}

MILLRACE_AUGMENT_INLINE __m512i product(__m512i a, __m512i b) {
  return _mm512_mullo_epi16(a, b);
}

MILLRACE_AUGMENT_INLINE __m512i upper(__m512i a, __m512i b) {
  return _mm512_mulhi_epu16(a, b);
}

struct Saturation {
  __m512i scaled, rest;  // V S, and 255 range - V S
};

MILLRACE_AUGMENT_INLINE Saturation saturation_of(__m512i range, __m512i most, __m512i reciprocal) {
  const __m512i numerator = _mm512_sub_epi16(_mm512_slli_epi16(range, 8), range);
  const __m512i rest = _mm512_sub_epi16(numerator, product(upper(numerator, reciprocal), most));
  const __m512i last = _mm512_min_epu16(rest, _mm512_sub_epi16(rest, most));  // V more is large
  return {_mm512_sub_epi16(numerator, last), last};
}

// Twice the quotient, and 1 more if it has a rest.
MILLRACE_AUGMENT_INLINE __m512i hue_of(__m512i numerator, __m512i range, __m512i reciprocal) {
  const __m512i divisor = _mm512_add_epi16(range, range);
  const __m512i quotient = upper(numerator, reciprocal);
  const __m512i rest = _mm512_sub_epi16(numerator, product(quotient, divisor));
  const __m512i less = _mm512_sub_epi16(rest, divisor);  // large where the divisor does not fit once more
  const __mmask32 fits = _mm512_cmpge_epu16_mask(rest, divisor);
  const __m512i twice = _mm512_add_epi16(quotient, quotient);
  const __m512i corrected = _mm512_mask_add_epi16(twice, fits, twice, all_halves(2));
  const __m512i last = _mm512_min_epu16(rest, less);
  return _mm512_mask_add_epi16(corrected, _mm512_test_epi16_mask(last, last), corrected, all_halves(1));
}

// V S part / 21675, rounded; the estimate is less than 1.02 too small. `widening` is 771, 65536 / 85.
MILLRACE_AUGMENT_INLINE __m512i loss_of(__m512i scaled, __m512i part, __m512i widening) {
  const __m512i wide = upper(scaled, product(part, widening));
  const __m512i value = upper(_mm512_add_epi16(wide, all_halves(127)), all_halves(257));
  const __m512i numerator = _mm512_add_epi16(product(scaled, part), all_halves(10837));
  const __m512i rest = _mm512_sub_epi16(numerator, product(value, all_halves(21675)));
  return _mm512_mask_add_epi16(value, _mm512_cmpge_epu16_mask(rest, all_halves(21675)), value, all_halves(1));
}

// What the first half of the work leaves to the second: one alone would be longer than the processor looks ahead.
struct HueParts {
  static constexpr std::size_t kPixels = 1024;
  alignas(64) Byte most[kPixels], smallest[kPixels], hue[kPixels];
  alignas(64) std::uint16_t scaled[kPixels];
};

MILLRACE_AUGMENT_INLINE void take_apart(const Planes& planes, std::size_t at, std::size_t count, HueParts& parts) {
  const HueTables& tables = kHueTables;
  const __m512i eighty_five = opaque(85);
  for (std::size_t i = 0; i < count; i += 64) {
    const __m512i r = bytes_of(planes.plane[0] + at + i), g = bytes_of(planes.plane[1] + at + i);
    const __m512i b = bytes_of(planes.plane[2] + at + i);
    const __m512i most = _mm512_max_epu8(_mm512_max_epu8(r, g), b), least = _mm512_min_epu8(_mm512_min_epu8(r, g), b);
    const __m512i range = _mm512_sub_epi8(most, least);
    const __mmask64 is_r = _mm512_cmpeq_epu8_mask(r, most), is_g = _mm512_cmpeq_epu8_mask(g, most);
    const __m512i one = _mm512_mask_blend_epi8(is_r, _mm512_mask_blend_epi8(is_g, r, b), g);
    const __m512i other = _mm512_mask_blend_epi8(is_r, _mm512_mask_blend_epi8(is_g, g, r), b);
    const __mmask64 is_less = _mm512_cmplt_epu8_mask(one, other);
    const __m512i distance = _mm512_sub_epi8(_mm512_max_epu8(one, other), _mm512_min_epu8(one, other));

    const Index of_most = index_of(most);
    const Halves by_most = interleave(look_up(tables.by_value[0], of_most), look_up(tables.by_value[1], of_most));
    const Halves v = widened(most), spread = widened(range), away = widened(distance);
    const Saturation low = saturation_of(spread.low, v.low, by_most.low);
    const Saturation high = saturation_of(spread.high, v.high, by_most.high);
    const __mmask64 rounds_up = _mm512_movepi8_mask(packed({low.rest, high.rest}));  // of 128 / 255 and more
    _mm512_store_si512(parts.most + i, most);
    _mm512_store_si512(parts.smallest + i, _mm512_mask_add_epi8(least, rounds_up, least, all_bytes(1)));
    _mm512_store_si512(parts.scaled + i, low.scaled);
    _mm512_store_si512(parts.scaled + i + 32, high.scaled);

    const Index of_range = index_of(range);
    const Halves by_range = interleave(look_up(tables.by_range[0], of_range), look_up(tables.by_range[1], of_range));
    const __m512i twice = packed({hue_of(product(away.low, eighty_five), spread.low, by_range.low),
                                  hue_of(product(away.high, eighty_five), spread.high, by_range.high)});
    // Rounded down where it is added, up where it is subtracted.
    const __mmask64 is_exact = _mm512_testn_epi8_mask(twice, all_bytes(1));
    const __m512i rounded = _mm512_mask_add_epi8(twice, is_less, twice, all_bytes(1));
    const __m512i turn = _mm512_and_si512(_mm512_srli_epi16(rounded, 1), all_bytes(0x7F));
    __m512i base = _mm512_mask_blend_epi8(is_g, all_bytes(170), all_bytes(85));
    base = _mm512_mask_blend_epi8(is_r, base, _mm512_maskz_mov_epi8(is_less, all_bytes(255)));
    const __m512i h = _mm512_mask_sub_epi8(_mm512_add_epi8(base, turn), is_less, base, turn);
    const __m512i byte = _mm512_and_si512(_mm512_srli_epi16(h, 3), all_bytes(31));
    const __mmask64 is_below =
        _mm512_mask_test_epi8_mask(is_exact, look_up_32(tables.below, byte), look_up_8(tables.bit, h));
    _mm512_store_si512(parts.hue + i, _mm512_mask_sub_epi8(h, is_below, h, all_bytes(1)));
  }
}

MILLRACE_AUGMENT_INLINE void put_together(const HueParts& parts, Byte shift, const Planes& planes, std::size_t at,
                                          std::size_t count) {
  const Byte* const lengths = kHueTables.part + shift;
  const Byte* const places = kHueTables.place + shift;
  const __m512i widening = opaque(771);
  for (std::size_t i = 0; i < count; i += 64) {
    const __m512i hue = bytes_of(parts.hue + i), most = bytes_of(parts.most + i);
    const Index of_hue = index_of(hue);
    const Halves part = widened(look_up(lengths, of_hue));
    const __m512i place = look_up(places, of_hue);
    const __m512i low = loss_of(_mm512_load_si512(parts.scaled + i), part.low, widening);
    const __m512i high = loss_of(_mm512_load_si512(parts.scaled + i + 32), part.high, widening);
    const __m512i between = _mm512_sub_epi8(most, packed({low, high}));
    for (unsigned c = 0; c < 3; ++c) {
      const __mmask64 is_most = _mm512_test_epi8_mask(place, all_bytes(kRedIsMost << c));
      const __mmask64 is_part = _mm512_test_epi8_mask(place, all_bytes(kRedIsPart << c));
      const __m512i value = _mm512_mask_blend_epi8(is_part, bytes_of(parts.smallest + i), between);
      _mm512_storeu_si512(planes.plane[c] + at + i, _mm512_mask_blend_epi8(is_most, value, most));
    }
  }
}

MILLRACE_AUGMENT_TARGET void hue_bytes(Byte shift, const Planes& planes, std::size_t padded) {
  HueParts parts;
  for (std::size_t at = 0; at < padded; at += HueParts::kPixels) {
    const std::size_t count = padded - at < HueParts::kPixels ? padded - at : HueParts::kPixels;
    take_apart(planes, at, count, parts);
    put_together(parts, shift, planes, at, count);
  }
}
