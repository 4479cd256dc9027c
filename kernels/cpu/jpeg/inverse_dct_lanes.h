// The inverse DCT over 128-bit lanes, a block a lane, for a file that has defined, in the anonymous namespace where it
// includes this, MILLRACE_JPEG_TARGET and the instructions of its vectors:
//   Vec; add32, sub32, madd, add_madd, shift_right32<bits>, pack32, adds16, pack_u8, low16, high16, low32, high32,
//   low8, high8, set32, pair
// All work inside a lane, as SSE2's do.
#pragma once

enum class Precision { kExact, kFast };

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

template <int kBits>
MILLRACE_JPEG_INLINE Vec descale(Wide value) {
  return pack32(shift_right32<kBits>(value.low), shift_right32<kBits>(value.high));
}

// One pass down the columns of rows[0..7], rounded and shifted by kBits. Constants: those of the algorithm, multiplied
// out.
template <int kBits>
MILLRACE_JPEG_INLINE void transform_columns(Vec rows[8]) {
  const Wide in04 = interleave(rows[0], rows[4]), in26 = interleave(rows[2], rows[6]);
  const Wide in13 = interleave(rows[1], rows[3]), in57 = interleave(rows[5], rows[7]);
  const Vec half = set32(1 << (kBits - 1));
  const Wide rounding{half, half};
  const Wide sum = add_products(rounding, in04, 8192, 8192);
  const Wide difference = add_products(rounding, in04, 8192, -8192);
  const Wide high = products(in26, 10703, 4433), low = products(in26, 4433, -10704);
  const Wide even[4] = {add(sum, high), add(difference, low), sub(difference, low), sub(sum, high)};
  const Wide odd[4] = {add_products(products(in13, 11363, 9633), in57, 6437, 2260),
                       add_products(products(in13, 9633, -2259), in57, -11362, -6436),
                       add_products(products(in13, 6437, -11362), in57, 2261, 9633),
                       add_products(products(in13, 2260, -6436), in57, 9633, -11363)};
  for (int i = 0; i < 4; ++i) {
    rows[i] = descale<kBits>(add(even[i], odd[i]));
    rows[7 - i] = descale<kBits>(sub(even[i], odd[i]));
  }
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

// Columns of 16 bits become rows of bytes, clamped: rows 2i and 2i + 1 in out[i].
MILLRACE_JPEG_INLINE void transpose_to_bytes(const Vec v[8], Vec out[4]) {
  const Vec middle = set32(128 << 16 | 128);
  Vec columns[4], a[4], b[4];
  for (int i = 0; i < 4; ++i)  // columns i and i + 4
    columns[i] = pack_u8(adds16(v[i], middle), adds16(v[i + 4], middle));
  for (int i = 0; i < 2; ++i) {
    a[2 * i] = low8(columns[i], columns[i + 2]);
    a[2 * i + 1] = high8(columns[i], columns[i + 2]);
  }
  // a[0]: columns 0 and 2; a[1]: 4 and 6; a[2]: 1 and 3; a[3]: 5 and 7
  for (int i = 0; i < 2; ++i) {
    b[2 * i] = low8(a[i], a[i + 2]);       // rows 0-3 of columns 4i .. 4i + 3
    b[2 * i + 1] = high8(a[i], a[i + 2]);  // rows 4-7
  }
  for (int i = 0; i < 2; ++i) {
    out[2 * i] = low32(b[i], b[i + 2]);
    out[2 * i + 1] = high32(b[i], b[i + 2]);
  }
}

// Rows of dequantised coefficients to rows of samples.
MILLRACE_JPEG_INLINE void transform_lanes(Vec rows[8], Vec out[4]) {
  transform_columns<11>(rows);
  transpose(rows);
  transform_columns<18>(rows);
  transpose_to_bytes(rows, out);
}

// A block of nothing but DC. False: too large.
MILLRACE_JPEG_TARGET bool fill_flat(const BlockJob& job) {
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
