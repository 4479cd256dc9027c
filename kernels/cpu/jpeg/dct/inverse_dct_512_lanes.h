// The 128-bit lanes of AVX-512's vectors, four blocks at a time, for the inverse DCTs that are written for them.
// Included once for each of the two targets that have such vectors, after MILLRACE_JPEG_TARGET, MILLRACE_JPEG_VECTOR
// and add_madd() are defined.
#pragma once

namespace millrace::kernels::jpeg {
namespace {

using Vec = __m512i;
MILLRACE_JPEG_VECTOR Vec add32(Vec a, Vec b) {
  return _mm512_add_epi32(a, b);
}
MILLRACE_JPEG_VECTOR Vec sub32(Vec a, Vec b) {
  return _mm512_sub_epi32(a, b);
}
MILLRACE_JPEG_VECTOR Vec madd(Vec a, Vec b) {
  return _mm512_madd_epi16(a, b);
}
template <int kBits>
MILLRACE_JPEG_VECTOR Vec shift_right32(Vec a) {
  return _mm512_srai_epi32(a, kBits);
}
MILLRACE_JPEG_VECTOR Vec pack32(Vec a, Vec b) {
  return _mm512_packs_epi32(a, b);
}
MILLRACE_JPEG_VECTOR Vec adds16(Vec a, Vec b) {
  return _mm512_adds_epi16(a, b);
}
MILLRACE_JPEG_VECTOR Vec pack_u8(Vec a, Vec b) {
  return _mm512_packus_epi16(a, b);
}
MILLRACE_JPEG_VECTOR Vec low16(Vec a, Vec b) {
  return _mm512_unpacklo_epi16(a, b);
}
MILLRACE_JPEG_VECTOR Vec high16(Vec a, Vec b) {
  return _mm512_unpackhi_epi16(a, b);
}
MILLRACE_JPEG_VECTOR Vec low32(Vec a, Vec b) {
  return _mm512_unpacklo_epi32(a, b);
}
MILLRACE_JPEG_VECTOR Vec high32(Vec a, Vec b) {
  return _mm512_unpackhi_epi32(a, b);
}
MILLRACE_JPEG_VECTOR Vec low64(Vec a, Vec b) {
  return _mm512_unpacklo_epi64(a, b);
}
MILLRACE_JPEG_VECTOR Vec high64(Vec a, Vec b) {
  return _mm512_unpackhi_epi64(a, b);
}
MILLRACE_JPEG_VECTOR Vec turn8(Vec a) {
  const __m128i turn = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_shuffle_epi8(a, _mm512_broadcast_i32x4(turn));
}
template <int kBits>
MILLRACE_JPEG_VECTOR Vec word_pairs(Vec a, Vec b) {
  return _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_srli_epi32(a, kBits), _mm512_slli_epi32(b, 16 - kBits));
}
MILLRACE_JPEG_VECTOR Vec add16(Vec a, Vec b) {
  return _mm512_add_epi16(a, b);
}
MILLRACE_JPEG_VECTOR Vec set32(int value) {
  return _mm512_set1_epi32(value);
}
MILLRACE_JPEG_VECTOR Vec pair(int first, int second) {
  return _mm512_set1_epi32(second * 65536 + (first & 0xFFFF));
}

MILLRACE_JPEG_VECTOR Vec subs16(Vec a, Vec b) {
  return _mm512_subs_epi16(a, b);
}
MILLRACE_JPEG_VECTOR Vec times16(Vec a, std::int16_t factor) {
  return _mm512_mulhrs_epi16(a, _mm512_set1_epi16(factor));
}
template <int kBits>
MILLRACE_JPEG_VECTOR Vec shift_right16(Vec a) {
  return _mm512_srai_epi16(a, kBits);
}
MILLRACE_JPEG_VECTOR Vec first16(std::int16_t value) {
  return _mm512_broadcast_i32x4(_mm_cvtsi32_si128(value & 0xFFFF));
}

#include "kernels/cpu/jpeg/dct/inverse_dct_lanes.h"
//
#include "kernels/cpu/jpeg/dct/fast_dct_lanes.h"

constexpr int kLanes = 4;

// Four vectors of four rows each, a vector a block, become four rows.
MILLRACE_JPEG_VECTOR void to_rows(const Vec blocks[kLanes], Vec rows[4]) {
  const Vec a = _mm512_shuffle_i32x4(blocks[0], blocks[1], 0x44), b = _mm512_shuffle_i32x4(blocks[0], blocks[1], 0xEE);
  const Vec c = _mm512_shuffle_i32x4(blocks[2], blocks[3], 0x44), d = _mm512_shuffle_i32x4(blocks[2], blocks[3], 0xEE);
  rows[0] = _mm512_shuffle_i32x4(a, c, 0x88);
  rows[1] = _mm512_shuffle_i32x4(a, c, 0xDD);
  rows[2] = _mm512_shuffle_i32x4(b, d, 0x88);
  rows[3] = _mm512_shuffle_i32x4(b, d, 0xDD);
}

}  // namespace
}  // namespace millrace::kernels::jpeg
