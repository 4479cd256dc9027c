// The 128-bit lanes of AVX2's vectors, two blocks at a time, for the inverse DCTs that are written for them. Files that
// include this include <immintrin.h> before it.
#pragma once

#include "kernels/cpu/jpeg/dct/fast_dct.h"

#define MILLRACE_JPEG_TARGET __attribute__((target("avx2")))
#define MILLRACE_JPEG_VECTOR MILLRACE_JPEG_TARGET inline __attribute__((always_inline))

namespace millrace::kernels::jpeg {
namespace {

using Vec = __m256i;
MILLRACE_JPEG_VECTOR Vec add32(Vec a, Vec b) {
  return _mm256_add_epi32(a, b);
}
MILLRACE_JPEG_VECTOR Vec sub32(Vec a, Vec b) {
  return _mm256_sub_epi32(a, b);
}
MILLRACE_JPEG_VECTOR Vec madd(Vec a, Vec b) {
  return _mm256_madd_epi16(a, b);
}
MILLRACE_JPEG_VECTOR Vec add_madd(Vec sum, Vec a, Vec b) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}
template <int kBits>
MILLRACE_JPEG_VECTOR Vec shift_right32(Vec a) {
  return _mm256_srai_epi32(a, kBits);
}
MILLRACE_JPEG_VECTOR Vec pack32(Vec a, Vec b) {
  return _mm256_packs_epi32(a, b);
}
MILLRACE_JPEG_VECTOR Vec adds16(Vec a, Vec b) {
  return _mm256_adds_epi16(a, b);
}
MILLRACE_JPEG_VECTOR Vec pack_u8(Vec a, Vec b) {
  return _mm256_packus_epi16(a, b);
}
MILLRACE_JPEG_VECTOR Vec low16(Vec a, Vec b) {
  return _mm256_unpacklo_epi16(a, b);
}
MILLRACE_JPEG_VECTOR Vec high16(Vec a, Vec b) {
  return _mm256_unpackhi_epi16(a, b);
}
MILLRACE_JPEG_VECTOR Vec low32(Vec a, Vec b) {
  return _mm256_unpacklo_epi32(a, b);
}
MILLRACE_JPEG_VECTOR Vec high32(Vec a, Vec b) {
  return _mm256_unpackhi_epi32(a, b);
}
MILLRACE_JPEG_VECTOR Vec low64(Vec a, Vec b) {
  return _mm256_unpacklo_epi64(a, b);
}
MILLRACE_JPEG_VECTOR Vec high64(Vec a, Vec b) {
  return _mm256_unpackhi_epi64(a, b);
}
MILLRACE_JPEG_VECTOR Vec turn8(Vec a) {
  const __m128i turn = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm256_shuffle_epi8(a, _mm256_broadcastsi128_si256(turn));
}
template <int kBits>
MILLRACE_JPEG_VECTOR Vec word_pairs(Vec a, Vec b) {
  return _mm256_blend_epi16(_mm256_srli_epi32(a, kBits), _mm256_slli_epi32(b, 16 - kBits), 0xAA);
}
MILLRACE_JPEG_VECTOR Vec add16(Vec a, Vec b) {
  return _mm256_add_epi16(a, b);
}
MILLRACE_JPEG_VECTOR Vec set32(int value) {
  return _mm256_set1_epi32(value);
}
MILLRACE_JPEG_VECTOR Vec pair(int first, int second) {
  return _mm256_set1_epi32(second * 65536 + (first & 0xFFFF));
}

MILLRACE_JPEG_VECTOR Vec subs16(Vec a, Vec b) {
  return _mm256_subs_epi16(a, b);
}
MILLRACE_JPEG_VECTOR Vec times16(Vec a, std::int16_t factor) {
  return _mm256_mulhrs_epi16(a, _mm256_set1_epi16(factor));
}
template <int kBits>
MILLRACE_JPEG_VECTOR Vec shift_right16(Vec a) {
  return _mm256_srai_epi16(a, kBits);
}
MILLRACE_JPEG_VECTOR Vec first16(std::int16_t value) {
  return _mm256_broadcastsi128_si256(_mm_cvtsi32_si128(value & 0xFFFF));
}

#include "kernels/cpu/jpeg/dct/inverse_dct_lanes.h"
//
#include "kernels/cpu/jpeg/dct/fast_dct_lanes.h"

}  // namespace
}  // namespace millrace::kernels::jpeg
