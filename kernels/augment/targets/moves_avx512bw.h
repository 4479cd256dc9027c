// moves_avx512.h without VBMI and VNNI: bytes move in pairs. Included by kernels_avx512bw.cc, in its anonymous
// namespace.
#pragma once

MILLRACE_AUGMENT_INLINE __m512i add_products(__m512i sum, __m512i a, __m512i b) {
  return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
}

// Where in a table of 256 entries the low and the high byte of each half are: in which pair, and whether in the upper
// 128. A byte moves where its place in the pair is not its place in the half.
struct Index {
  __m512i low, high;
  __mmask32 low_is_upper, high_is_upper, low_moves, high_moves;
};

MILLRACE_AUGMENT_INLINE Index index_of(__m512i bytes) {
  return {_mm512_srli_epi16(bytes, 1),
          _mm512_srli_epi16(bytes, 9),
          _mm512_test_epi16_mask(bytes, all_halves(0x80)),
          _mm512_movepi16_mask(bytes),
          _mm512_test_epi16_mask(bytes, all_halves(1)),
          _mm512_testn_epi16_mask(bytes, all_halves(0x100))};
}

MILLRACE_AUGMENT_INLINE __m512i look_up_in(__m512i t0, __m512i t1, __m512i t2, __m512i t3, const Index& in) {
  const __m512i low = _mm512_mask_blend_epi16(in.low_is_upper, _mm512_permutex2var_epi16(t0, in.low, t1),
                                              _mm512_permutex2var_epi16(t2, in.low, t3));
  const __m512i high = _mm512_mask_blend_epi16(in.high_is_upper, _mm512_permutex2var_epi16(t0, in.high, t1),
                                               _mm512_permutex2var_epi16(t2, in.high, t3));
  return _mm512_mask_blend_epi8(0xAAAAAAAAAAAAAAAA, _mm512_mask_srli_epi16(low, in.low_moves, low, 8),
                                _mm512_mask_slli_epi16(high, in.high_moves, high, 8));
}

MILLRACE_AUGMENT_INLINE __m512i look_up(const Byte* table, const Index& in) {
  return look_up_in(bytes_of(table), bytes_of(table + 64), bytes_of(table + 128), bytes_of(table + 192), in);
}

MILLRACE_AUGMENT_INLINE __m512i shuffled(const Byte* sixteen, __m512i index) {
  const __m128i entries = _mm_loadu_si128(reinterpret_cast<const __m128i*>(sixteen));
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(entries), index);
}

// Of 32 entries. REQUIRES: index < 32.
MILLRACE_AUGMENT_INLINE __m512i look_up_32(const Byte* table, __m512i index) {
  const __mmask64 is_upper = _mm512_test_epi8_mask(index, all_bytes(16));
  return _mm512_mask_blend_epi8(is_upper, shuffled(table, index), shuffled(table + 16, index));
}

// Of 8 entries that recur, by an index's lowest bits.
MILLRACE_AUGMENT_INLINE __m512i look_up_8(const Byte* table, __m512i index) {
  return shuffled(table, _mm512_and_si512(index, all_bytes(7)));
}

MILLRACE_AUGMENT_TARGET void map_bytes(const Byte* table, Byte* plane, std::size_t padded) {
  const __m512i t0 = bytes_of(table), t1 = bytes_of(table + 64), t2 = bytes_of(table + 128), t3 = bytes_of(table + 192);
  for (std::size_t at = 0; at < padded; at += 64) {
    _mm512_storeu_si512(plane + at, look_up_in(t0, t1, t2, t3, index_of(bytes_of(plane + at))));
  }
}

// -------------------------------------------------------------------------------------------------- pixels from places
// Each pixel is a load: microcode against Downfall makes gathers slow on these processors. What is not asked for is
// loaded from the picture's beginning.

template <class Number>
MILLRACE_AUGMENT_INLINE Number load_number(const Byte* at) {
  Number number;
  std::memcpy(&number, at, sizeof number);
  return number;
}

MILLRACE_AUGMENT_INLINE __m128i four_at(const Byte* data, const std::int32_t* at) {
  __m128i four = _mm_cvtsi32_si128(load_number<std::int32_t>(data + at[0]));
  four = _mm_insert_epi32(four, load_number<std::int32_t>(data + at[1]), 1);
  four = _mm_insert_epi32(four, load_number<std::int32_t>(data + at[2]), 2);
  return _mm_insert_epi32(four, load_number<std::int32_t>(data + at[3]), 3);
}

MILLRACE_AUGMENT_INLINE __m128i two_at(const Byte* data, const std::int32_t* at) {
  const __m128i one = _mm_cvtsi64_si128(load_number<std::int64_t>(data + at[0]));
  return _mm_insert_epi64(one, load_number<std::int64_t>(data + at[1]), 1);
}

MILLRACE_AUGMENT_INLINE __m512i all_of(__m128i a, __m128i b, __m128i c, __m128i d) {
  const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
  const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(c), d, 1);
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

MILLRACE_AUGMENT_INLINE __m512i gather_pixels(const Pixels& in, __mmask16 which, __m512i byte) {
  alignas(64) std::int32_t at[16];
  _mm512_store_si512(at, _mm512_maskz_mov_epi32(which, byte));
  return all_of(four_at(in.data, at), four_at(in.data, at + 4), four_at(in.data, at + 8), four_at(in.data, at + 12));
}

MILLRACE_AUGMENT_INLINE __m512i gather_eight_pixels(const Pixels& in, __mmask8 which, __m256i byte) {
  alignas(32) std::int32_t at[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(at), _mm256_maskz_mov_epi32(which, byte));
  return _mm512_castsi256_si512(
      _mm256_inserti128_si256(_mm256_castsi128_si256(four_at(in.data, at)), four_at(in.data, at + 4), 1));
}

// Pixels and those to their right.
MILLRACE_AUGMENT_INLINE __m512i gather_pairs(const Pixels& in, __mmask8 which, __m256i byte) {
  alignas(32) std::int32_t at[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(at), _mm256_maskz_mov_epi32(which, byte));
  return all_of(two_at(in.data, at), two_at(in.data, at + 2), two_at(in.data, at + 4), two_at(in.data, at + 6));
}
