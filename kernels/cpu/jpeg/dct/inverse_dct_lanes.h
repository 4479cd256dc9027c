// The inverse DCT over 128-bit lanes, a block a lane, for a file that has defined, in the anonymous namespace where it
// includes this, MILLRACE_JPEG_TARGET and the instructions of its vectors:
//   Vec; add32, sub32, madd, add_madd, shift_right32<bits>, pack32, add16, pack_u8, low16, high16, low32, high32,
//   low64, high64, turn8 (byte 4i + j to 4j + i), set32, pair, word_pairs<bits> (of two vectors of dwords, each shifted right by `bits`
//   and cut to a word: dword by dword the first's below the second's)
// All work inside a lane, as SSE2's do.
#pragma once

#define MILLRACE_JPEG_INLINE MILLRACE_JPEG_TARGET inline __attribute__((always_inline))

// Sums of 32 bits for the 8 samples of a row: columns 0-3 and 4-7.
struct Wide {
  Vec low, high;
};

MILLRACE_JPEG_INLINE Wide add(Wide a, Wide b) {
  return {add32(a.low, b.low), add32(a.high, b.high)};
}
MILLRACE_JPEG_INLINE Wide sub(Wide a, Wide b) {
  return {sub32(a.low, b.low), sub32(a.high, b.high)};
}

// Two rows, sample by sample, and x * first + y * second of each.
MILLRACE_JPEG_INLINE Wide interleave(Vec x, Vec y) {
  return {low16(x, y), high16(x, y)};
}
MILLRACE_JPEG_INLINE Wide products(Wide xy, int first, int second) {
  const Vec factors = pair(first, second);
  return {madd(xy.low, factors), madd(xy.high, factors)};
}

// The same, added to `sum`.
MILLRACE_JPEG_INLINE Wide add_products(Wide sum, Wide xy, int first, int second) {
  const Vec factors = pair(first, second);
  return {add_madd(sum.low, xy.low, factors), add_madd(sum.high, xy.high, factors)};
}

// Words to transform, the two of a pair side by side.
struct Pairs {
  Wide in04, in26, in15, in37;
};

// Bits of the sums that each pass drops. The first one ends with pairs of words for the second one.
constexpr int kFirstBits = 11, kSecondBits = 18;

MILLRACE_JPEG_INLINE Vec to_pairs(Wide sums) {
  return word_pairs<kFirstBits>(sums.low, sums.high);
}

// Down the columns of eight rows; `sum` and `difference` are those of rows 0 and 4, times 2^13. Constants: those of the
// algorithm, multiplied out.
MILLRACE_JPEG_INLINE void transform_columns(const Pairs& in, Wide sum, Wide difference, Vec out[8]) {
  const Wide high = products(in.in26, 10703, 4433), low = products(in.in26, 4433, -10704);
  const Wide even[4] = {add(sum, high), add(difference, low), sub(difference, low), sub(sum, high)};
  const Wide odd[4] = {add_products(products(in.in15, 11363, 6437), in.in37, 9633, 2260),
                       add_products(products(in.in15, 9633, -11362), in.in37, -2259, -6436),
                       add_products(products(in.in15, 6437, 2261), in.in37, -11362, 9633),
                       add_products(products(in.in15, 2260, 9633), in.in37, -6436, -11363)};
  for (int i = 0; i < 4; ++i) {
    out[i] = to_pairs(add(even[i], odd[i]));
    out[7 - i] = to_pairs(sub(even[i], odd[i]));
  }
}

// Four rows of pairs of columns (0 and 4, 1 and 5, ...) become a vector a pair.
MILLRACE_JPEG_INLINE void transpose_pairs(const Vec rows[4], Vec& in04, Vec& in15, Vec& in26, Vec& in37) {
  const Vec a = low32(rows[0], rows[1]), b = low32(rows[2], rows[3]);
  const Vec c = high32(rows[0], rows[1]), d = high32(rows[2], rows[3]);
  in04 = low64(a, b);
  in15 = high64(a, b);
  in26 = low64(c, d);
  in37 = high64(c, d);
}

// Rows of 16 bits become columns. Each round turns the six bits of (row, column) by one.
MILLRACE_JPEG_INLINE void transpose(Vec v[8]) {
  for (int round = 0; round < 3; ++round) {
    Vec turned[8];
    for (int i = 0; i < 4; ++i) {
      turned[2 * i] = low16(v[i], v[i + 4]);
      turned[2 * i + 1] = high16(v[i], v[i + 4]);
    }
    for (int i = 0; i < 8; ++i) v[i] = turned[i];
  }
}

// Sums of eight columns, of four rows each, become rows of bytes, clamped: two a vector.
MILLRACE_JPEG_INLINE void to_bytes(const Vec sums[8], Vec out[2]) {
  Vec words[4];
  for (int i = 0; i < 4; ++i)
    words[i] = pack32(shift_right32<kSecondBits>(sums[2 * i]), shift_right32<kSecondBits>(sums[2 * i + 1]));
  const Vec left = turn8(pack_u8(words[0], words[1])), right = turn8(pack_u8(words[2], words[3]));
  out[0] = low32(left, right);
  out[1] = high32(left, right);
}

// The first pass, where rows 4-7 are 0.
MILLRACE_JPEG_INLINE void transform_upper_columns(const Vec rows[4], Vec out[8]) {
  const Vec none = set32(0), half = set32(1 << (kFirstBits - 1));
  const Wide in0 = interleave(rows[0], none), in2 = interleave(rows[2], none), in13 = interleave(rows[1], rows[3]);
  const Wide sum = add_products({half, half}, in0, 8192, 0);
  const Wide high = products(in2, 10703, 0), low = products(in2, 4433, 0);
  const Wide even[4] = {add(sum, high), add(sum, low), sub(sum, low), sub(sum, high)};
  const Wide odd[4] = {products(in13, 11363, 9633), products(in13, 9633, -2259), products(in13, 6437, -11362),
                       products(in13, 2260, -6436)};
  for (int i = 0; i < 4; ++i) {
    out[i] = to_pairs(add(even[i], odd[i]));
    out[7 - i] = to_pairs(sub(even[i], odd[i]));
  }
}

// The second pass, of four rows. Between the passes words of an ordinary block stay so far below 2^15 that its rounding
// and the samples' middle level can be added to its first column there.
MILLRACE_JPEG_INLINE void transform_four_rows(const Vec pairs[4], Vec out[2]) {
  constexpr int kOneBits = 13;
  Vec in04, in15, in26, in37, sums[8];
  transpose_pairs(pairs, in04, in15, in26, in37);
  in04 = add16(in04, set32((128 << kSecondBits | 1 << (kSecondBits - 1)) >> kOneBits));
  const Vec sum = madd(in04, pair(8192, 8192)), difference = madd(in04, pair(8192, -8192));
  const Vec high = madd(in26, pair(10703, 4433)), low = madd(in26, pair(4433, -10704));
  const Vec even[4] = {add32(sum, high), add32(difference, low), sub32(difference, low), sub32(sum, high)};
  const Vec odd[4] = {add_madd(madd(in15, pair(11363, 6437)), in37, pair(9633, 2260)),
                      add_madd(madd(in15, pair(9633, -11362)), in37, pair(-2259, -6436)),
                      add_madd(madd(in15, pair(6437, 2261)), in37, pair(-11362, 9633)),
                      add_madd(madd(in15, pair(2260, 9633)), in37, pair(-6436, -11363))};
  for (int i = 0; i < 4; ++i) {
    sums[i] = add32(even[i], odd[i]);
    sums[7 - i] = sub32(even[i], odd[i]);
  }
  to_bytes(sums, out);
}

MILLRACE_JPEG_INLINE void transform_rows(const Vec pairs[8], Vec out[4]) {
  transform_four_rows(pairs, out);
  transform_four_rows(pairs + 4, out + 2);
}

// Rows of dequantised coefficients to rows of samples.
MILLRACE_JPEG_INLINE void transform_lanes(const Vec rows[8], Vec out[4]) {
  const Vec half = set32(1 << (kFirstBits - 1));
  const Pairs in{interleave(rows[0], rows[4]), interleave(rows[2], rows[6]), interleave(rows[1], rows[5]),
                 interleave(rows[3], rows[7])};
  Vec pairs[8];
  transform_columns(in, add_products({half, half}, in.in04, 8192, 8192),
                    add_products({half, half}, in.in04, 8192, -8192), pairs);
  transform_rows(pairs, out);
}

// The same of a corner of 4 x 4, the other coefficients being 0: rows[4..7] count for nothing.
[[maybe_unused]] MILLRACE_JPEG_INLINE void transform_corner_lanes(const Vec rows[8], Vec out[4]) {
  Vec pairs[8];
  transform_upper_columns(rows, pairs);
  transform_rows(pairs, out);
}

// A block of nothing but DC. False: too large.
[[maybe_unused]] MILLRACE_JPEG_TARGET bool fill_flat(const BlockJob& job) {
  const int level = job.coefficients[0];
  const int most = job.dequantiser->harmless[0];
  if ((level > most || level < -most) && !is_ordinary(job)) return false;
  job.coefficients[0] = 0;
  const int sample = ((level * job.dequantiser->factors[0] + 4) >> 3) + 128;
  const __m128i samples = _mm_set1_epi8(static_cast<char>(sample < 0 ? 0 : sample > 255 ? 255 : sample));
  for (int row = 0; row < kBlock; ++row)
    _mm_storel_epi64(reinterpret_cast<__m128i*>(job.out + row * job.stride), samples);
  return true;
}
