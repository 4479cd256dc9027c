// Transforms with AVX-512: geometry_loop.h's arithmetic, 8 or 16 pixels at a time, which the target's functions gather.
// Pixels whose neighbours are not all in the picture are left to it. Included by loops_avx512.h.
#pragma once

// Of pixels in 32 bits each.
MILLRACE_AUGMENT_INLINE void store_pixels(__m512i pixels, __mmask16 which, const Planes& out, std::size_t at) {
  for (int c = 0; c < 3; ++c) {
    _mm512_mask_cvtepi32_storeu_epi8(out.plane[c] + at, which, _mm512_srli_epi32(pixels, static_cast<unsigned>(8 * c)));
  }
}

MILLRACE_AUGMENT_INLINE __m512i all_words(std::uint32_t value) {
  return _mm512_set1_epi32(static_cast<int>(value));
}

MILLRACE_AUGMENT_TARGET void copy_fixed_gathered(const FixedRow& row, const Pixels& in, const Planes& out,
                                                 std::size_t at) {
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __m512i x = _mm512_add_epi32(all_words(row.x), _mm512_mullo_epi32(lanes, all_words(row.x_step)));
  __m512i y = _mm512_add_epi32(all_words(row.y), _mm512_mullo_epi32(lanes, all_words(row.y_step)));
  const __m512i width = _mm512_set1_epi32(in.width), height = _mm512_set1_epi32(in.height);
  const __m512i x_steps = all_words(16 * row.x_step), y_steps = all_words(16 * row.y_step);
  for (int column = 0; column < in.width; column += 16) {
    const __m512i from_x = _mm512_srai_epi32(x, 16), from_y = _mm512_srai_epi32(y, 16);
    const int left = in.width - column;
    __mmask16 which = left < 16 ? static_cast<__mmask16>((1U << left) - 1) : static_cast<__mmask16>(0xFFFF);
    which = _mm512_mask_cmplt_epu32_mask(which, from_x, width);
    which = _mm512_mask_cmplt_epu32_mask(which, from_y, height);
    const __m512i pixel = _mm512_add_epi32(_mm512_mullo_epi32(from_y, width), from_x);
    const __m512i byte = _mm512_add_epi32(_mm512_add_epi32(pixel, pixel), pixel);
    const __m512i found = gather_pixels(in, which, byte);
    store_pixels(found, which, out, at + static_cast<std::size_t>(column));
    x = _mm512_add_epi32(x, x_steps);
    y = _mm512_add_epi32(y, y_steps);
  }
}

// Eight values of 0..255 plus 2^52, exactly: byte `c` of each 64 bits.
MILLRACE_AUGMENT_INLINE __m512d raised(__m512i pixels, unsigned c) {
  const __m512i byte = _mm512_and_si512(_mm512_srli_epi64(pixels, 8 * c), _mm512_set1_epi64(255));
  return _mm512_castsi512_pd(_mm512_or_si512(byte, _mm512_set1_epi64(0x4330000000000000)));
}

MILLRACE_AUGMENT_INLINE __m512d lowered(__m512d value) {
  return _mm512_sub_pd(value, _mm512_set1_pd(4503599627370496.0));
}

// Where eight pixels of the result come from.
struct Spot {
  __m512d x, y;  // from the pixel to the upper left
  __m256i byte;  // where that pixel is
};

struct Bilinear {
  static constexpr int kBefore = 0, kAfter = 1;  // pixels that it needs

  Spot spot;
  __m512i above, below;

  MILLRACE_AUGMENT_INLINE void gather(const Pixels& in, __mmask8 which) {
    above = gather_pairs(in, which, spot.byte);
    below = gather_pairs(in, which, _mm256_add_epi32(spot.byte, _mm256_set1_epi32(3 * in.width)));
  }

  MILLRACE_AUGMENT_INLINE __m512d across(__m512i pair, unsigned c) const {
    const __m512d left = raised(pair, c), right = raised(pair, c + 3);
    return _mm512_add_pd(lowered(left), _mm512_mul_pd(_mm512_sub_pd(right, left), spot.x));
  }

  MILLRACE_AUGMENT_INLINE __m512d value(unsigned c) const {
    const __m512d a = across(above, c), b = across(below, c);
    return _mm512_add_pd(a, _mm512_mul_pd(_mm512_sub_pd(b, a), spot.y));
  }
};

struct Bicubic {
  static constexpr int kBefore = 1, kAfter = 2;

  Spot spot;
  __m512i pairs[4][2];

  MILLRACE_AUGMENT_INLINE void gather(const Pixels& in, __mmask8 which) {
    for (int row = 0; row < 4; ++row) {
      const __m256i byte = _mm256_add_epi32(spot.byte, _mm256_set1_epi32(3 * ((row - 1) * in.width - 1)));
      pairs[row][0] = gather_pairs(in, which, byte);
      pairs[row][1] = gather_pairs(in, which, _mm256_add_epi32(byte, _mm256_set1_epi32(6)));
    }
  }

  static MILLRACE_AUGMENT_INLINE __m512d polynomial(__m512d v, __m512d linear, __m512d square, __m512d cube,
                                                    __m512d d) {
    const __m512d inner = _mm512_add_pd(square, _mm512_mul_pd(d, cube));
    return _mm512_add_pd(v, _mm512_mul_pd(d, _mm512_add_pd(linear, _mm512_mul_pd(d, inner))));
  }

  // Sums of integers are exact in any order.
  MILLRACE_AUGMENT_INLINE __m512d across(const __m512i* pair, unsigned c) const {
    const __m512d v0 = raised(pair[0], c), v1 = raised(pair[0], c + 3);
    const __m512d v2 = raised(pair[1], c), v3 = raised(pair[1], c + 3);
    const __m512d first = _mm512_sub_pd(v0, v1), last = _mm512_sub_pd(v3, v2);
    const __m512d cube = _mm512_sub_pd(last, first);
    return polynomial(lowered(v1), _mm512_sub_pd(v2, v0), _mm512_sub_pd(first, cube), cube, spot.x);
  }

  MILLRACE_AUGMENT_INLINE __m512d value(unsigned c) const {
    const __m512d v0 = across(pairs[0], c), v1 = across(pairs[1], c), v2 = across(pairs[2], c),
                  v3 = across(pairs[3], c);
    const __m512d first = _mm512_sub_pd(v0, v1), twice = _mm512_add_pd(first, first);
    const __m512d square = _mm512_sub_pd(_mm512_add_pd(twice, v2), v3);
    const __m512d cube = _mm512_add_pd(_mm512_sub_pd(_mm512_sub_pd(v1, v0), v2), v3);
    const __m512d sum = polynomial(v1, _mm512_sub_pd(v2, v0), square, cube, spot.y);
    return _mm512_min_pd(_mm512_max_pd(sum, _mm512_setzero_pd()), _mm512_set1_pd(255.0));
  }
};

struct Coordinates {
  __m512d x, y;
};

MILLRACE_AUGMENT_INLINE __m512d linear(double by_column, __m512d column, double of_row, double constant) {
  const __m512d sum = _mm512_add_pd(_mm512_mul_pd(_mm512_set1_pd(by_column), column), _mm512_set1_pd(of_row));
  return _mm512_add_pd(sum, _mm512_set1_pd(constant));
}

// Of eight pixels of a row, from `column` on.
MILLRACE_AUGMENT_INLINE Coordinates coordinates_of(const Operation& operation, __m512d column, double y) {
  const auto& m = operation.matrix;
  const Coordinates from{linear(m[0], column, m[1] * y, m[2]), linear(m[3], column, m[4] * y, m[5])};
  if (operation.step != Step::kPerspective) return from;
  const __m512d divisor = linear(m[6], column, m[7] * y, 1);
  return {_mm512_div_pd(from.x, divisor), _mm512_div_pd(from.y, divisor)};
}

MILLRACE_AUGMENT_INLINE __mmask8 within(__mmask8 which, __m512d value, double least, double past) {
  which = _mm512_mask_cmp_pd_mask(which, value, _mm512_set1_pd(least), _CMP_GE_OQ);
  return _mm512_mask_cmp_pd_mask(which, value, _mm512_set1_pd(past), _CMP_LT_OQ);
}

// True of what is no number too.
MILLRACE_AUGMENT_INLINE __mmask8 not_outside(__mmask8 which, __m512d value, double past) {
  which = _mm512_mask_cmp_pd_mask(which, value, _mm512_setzero_pd(), _CMP_NLT_UQ);
  return _mm512_mask_cmp_pd_mask(which, value, _mm512_set1_pd(past), _CMP_NGE_UQ);
}

MILLRACE_AUGMENT_INLINE __m256i byte_of(const Pixels& in, __m512d x, __m512d y) {
  const __m256i row = _mm256_mullo_epi32(_mm512_cvttpd_epi32(y), _mm256_set1_epi32(in.width));
  return _mm256_mullo_epi32(_mm256_add_epi32(row, _mm512_cvttpd_epi32(x)), _mm256_set1_epi32(3));
}

template <class Filter>
MILLRACE_AUGMENT_INLINE void sample_eight(const Pixels& in, const Coordinates& from, __mmask8 which, const Planes& out,
                                          std::size_t at) {
  const __m512d half = _mm512_set1_pd(0.5), x = _mm512_sub_pd(from.x, half), y = _mm512_sub_pd(from.y, half);
  const __m512d left = _mm512_roundscale_pd(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  const __m512d top = _mm512_roundscale_pd(y, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  __mmask8 inner = within(which, left, Filter::kBefore, in.width - Filter::kAfter);
  inner = within(inner, top, Filter::kBefore, in.height - Filter::kAfter);
  if (inner != 0) {
    Filter filter;
    filter.spot = {_mm512_sub_pd(x, left), _mm512_sub_pd(y, top), byte_of(in, left, top)};
    filter.gather(in, inner);
    for (unsigned c = 0; c < 3; ++c) {
      _mm256_mask_cvtepi32_storeu_epi8(out.plane[c] + at, inner, _mm512_cvttpd_epi32(filter.value(c)));
    }
  }
  if (inner == which) return;
  double from_x[8], from_y[8];
  _mm512_storeu_pd(from_x, from.x);
  _mm512_storeu_pd(from_y, from.y);
  for (unsigned i = 0; i < 8; ++i) {
    if (((which ^ inner) >> i & 1) == 0) continue;
    if constexpr (Filter::kAfter == 1) {
      bilinear(in, from_x[i], from_y[i], out, at + i);
    } else {
      bicubic(in, from_x[i], from_y[i], out, at + i);
    }
  }
}

MILLRACE_AUGMENT_TARGET void sample_gathered(const Operation& operation, const Pixels& in, int row, const Planes& out,
                                             std::size_t at) {
  const double y = row + 0.5;
  __m512d column = _mm512_setr_pd(0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5);
  for (int x = 0; x < in.width; x += 8, column = _mm512_add_pd(column, _mm512_set1_pd(8.0)), at += 8) {
    const Coordinates from = coordinates_of(operation, column, y);
    __mmask8 which = in.width - x < 8 ? static_cast<__mmask8>((1U << (in.width - x)) - 1) : static_cast<__mmask8>(0xFF);
    const __mmask8 there = which;
    which = within(within(there, from.x, 0, in.width), from.y, 0, in.height);
    if (operation.step == Step::kPerspective && operation.sampling != Sampling::kNearest) {
      const __mmask8 nowhere = not_outside(not_outside(there, from.x, in.width), from.y, in.height) ^ which;
      for (Byte* const plane : out.plane) _mm_mask_storeu_epi8(plane + at, nowhere, _mm_setzero_si128());
    }
    if (which == 0) continue;
    if (operation.sampling == Sampling::kBilinear) {
      sample_eight<Bilinear>(in, from, which, out, at);
    } else if (operation.sampling == Sampling::kBicubic) {
      sample_eight<Bicubic>(in, from, which, out, at);
    } else {
      store_pixels(gather_eight_pixels(in, which, byte_of(in, from.x, from.y)), which, out, at);
    }
  }
}
