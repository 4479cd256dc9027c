// How bytes move with VBMI, and sums of products with VNNI: moves_avx512bw.h has the same functions without them.
// Included by kernels_avx512.cc, in its anonymous namespace.
#pragma once

MILLRACE_AUGMENT_INLINE __m512i add_products(__m512i sum, __m512i a, __m512i b) {
  return _mm512_dpwssd_epi32(sum, a, b);
}

// Where in a table of 256 entries: each index, and which quarter it is in.
struct Index {
  __m512i bytes;
  __mmask64 second, third, fourth;
};

MILLRACE_AUGMENT_INLINE Index index_of(__m512i bytes) {
  const __mmask64 upper = _mm512_movepi8_mask(bytes), odd = _mm512_movepi8_mask(_mm512_add_epi8(bytes, bytes));
  return {bytes, _kandn_mask64(upper, odd), _kandn_mask64(odd, upper), _kand_mask64(odd, upper)};
}

MILLRACE_AUGMENT_INLINE __m512i look_up(const Byte* table, const Index& in) {
  __m512i found = _mm512_permutexvar_epi8(in.bytes, bytes_of(table));
  found = _mm512_mask_permutexvar_epi8(found, in.second, in.bytes, bytes_of(table + 64));
  found = _mm512_mask_permutexvar_epi8(found, in.third, in.bytes, bytes_of(table + 128));
  return _mm512_mask_permutexvar_epi8(found, in.fourth, in.bytes, bytes_of(table + 192));
}

// Of 32 entries, in a table of 64. REQUIRES: index < 32.
MILLRACE_AUGMENT_INLINE __m512i look_up_32(const Byte* table, __m512i index) {
  return _mm512_permutexvar_epi8(index, bytes_of(table));
}

// Of 8 entries that recur in a table of 64, by an index's lowest bits.
MILLRACE_AUGMENT_INLINE __m512i look_up_8(const Byte* table, __m512i index) {
  return _mm512_permutexvar_epi8(index, bytes_of(table));
}

// One table alone is looked up faster as two halves.
MILLRACE_AUGMENT_TARGET void map_bytes(const Byte* table, Byte* plane, std::size_t padded) {
  const __m512i t0 = bytes_of(table), t1 = bytes_of(table + 64), t2 = bytes_of(table + 128), t3 = bytes_of(table + 192);
  for (std::size_t at = 0; at < padded; at += 64) {
    const __m512i in = bytes_of(plane + at);
    const __mmask64 upper = _mm512_movepi8_mask(in), odd = _mm512_movepi8_mask(_mm512_add_epi8(in, in));
    const __m512i low = _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(in, t0), odd, in, t1);
    const __m512i high = _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(in, t2), odd, in, t3);
    _mm512_storeu_si512(plane + at, _mm512_mask_blend_epi8(upper, low, high));
  }
}

// ------------------------------------------------------------------------------------------------ rows to planes, back

struct PixelOrder {
  alignas(64) Byte two[3][64], last[3][64];
  std::uint64_t is_last[3];
};

// Of plane c, or of the c-th 64 bytes of pixels: where each byte is in the first two registers, or in the third.
constexpr PixelOrder make_split_order() {
  PixelOrder order{};
  for (unsigned c = 0; c < 3; ++c) {
    for (unsigned i = 0; i < 64; ++i) {
      const unsigned from = 3 * i + c;
      order.two[c][i] = static_cast<Byte>(from & 127);
      order.last[c][i] = static_cast<Byte>(from & 63);
      order.is_last[c] |= std::uint64_t{from >= 128} << i;
    }
  }
  return order;
}

constexpr PixelOrder make_merge_order() {
  PixelOrder order{};
  for (unsigned part = 0; part < 3; ++part) {
    for (unsigned i = 0; i < 64; ++i) {
      const unsigned at = 64 * part + i, pixel = at / 3, c = at % 3;
      order.two[part][i] = static_cast<Byte>(pixel + (c == 1 ? 64 : 0));
      order.last[part][i] = static_cast<Byte>(pixel);
      order.is_last[part] |= std::uint64_t{c == 2} << i;
    }
  }
  return order;
}

constexpr PixelOrder kSplitOrder = make_split_order(), kMergeOrder = make_merge_order();

MILLRACE_AUGMENT_INLINE __m512i ordered(const PixelOrder& order, unsigned which, __m512i a, __m512i b, __m512i c) {
  const __m512i two = _mm512_permutex2var_epi8(a, bytes_of(order.two[which]), b);
  return _mm512_mask_permutexvar_epi8(two, order.is_last[which], bytes_of(order.last[which]), c);
}

MILLRACE_AUGMENT_TARGET void split_pixels(const Byte* pixels, std::size_t count, const Planes& planes, std::size_t at) {
  std::size_t i = 0;
  for (; i + 64 <= count; i += 64) {
    const Byte* const from = pixels + 3 * i;
    const __m512i a = bytes_of(from), b = bytes_of(from + 64), c = bytes_of(from + 128);
    for (unsigned plane = 0; plane < 3; ++plane) {
      _mm512_storeu_si512(planes.plane[plane] + at + i, ordered(kSplitOrder, plane, a, b, c));
    }
  }
  if (i == count) return;
  const Byte* const from = pixels + 3 * i;
  const std::size_t bytes = 3 * (count - i);
  __m512i in[3];
  for (std::size_t part = 0; part < 3; ++part) {
    in[part] = _mm512_maskz_loadu_epi8(bytes > 64 * part ? lowest(bytes - 64 * part) : 0, from + 64 * part);
  }
  for (unsigned plane = 0; plane < 3; ++plane) {
    _mm512_mask_storeu_epi8(planes.plane[plane] + at + i, lowest(count - i),
                            ordered(kSplitOrder, plane, in[0], in[1], in[2]));
  }
}

MILLRACE_AUGMENT_TARGET void merge_pixels(const Planes& planes, std::size_t at, std::size_t count, Byte* pixels) {
  std::size_t i = 0;
  for (; i + 64 <= count; i += 64) {
    const __m512i a = bytes_of(planes.plane[0] + at + i), b = bytes_of(planes.plane[1] + at + i);
    const __m512i c = bytes_of(planes.plane[2] + at + i);
    for (unsigned part = 0; part < 3; ++part) {
      _mm512_storeu_si512(pixels + 3 * i + 64 * part, ordered(kMergeOrder, part, a, b, c));
    }
  }
  if (i < count) merge(planes, at + i, count - i, pixels + 3 * i);
}

// -------------------------------------------------------------------------------------------------- pixels from places

MILLRACE_AUGMENT_INLINE __m512i gather_pixels(const Pixels& in, __mmask16 which, __m512i byte) {
  return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), which, byte, in.data, 1);
}

MILLRACE_AUGMENT_INLINE __m512i gather_eight_pixels(const Pixels& in, __mmask8 which, __m256i byte) {
  return _mm512_castsi256_si512(_mm256_mmask_i32gather_epi32(_mm256_setzero_si256(), which, byte, in.data, 1));
}

// Pixels and those to their right.
MILLRACE_AUGMENT_INLINE __m512i gather_pairs(const Pixels& in, __mmask8 which, __m256i byte) {
  return _mm512_mask_i32gather_epi64(_mm512_setzero_si512(), which, byte, in.data, 1);
}
