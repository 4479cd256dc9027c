// Unpacking with AVX-512 (VBMI2) and GFNI, a block at a time in registers, for the loops that do it: they include this
// in their namespace's reach and have the functions inlined. What they read lies within the bounds that README.md gives,
// whatever the bytes are.
#pragma once

// g++ 12 takes its own intrinsics' deliberately undefined operands for mistakes. Include this before <immintrin.h>.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <array>
#include <cstdint>
#include <cstring>

#include "kernels/packed/layout.h"
#include "kernels/packed/shapes.h"

#define MILLRACE_PACKED_TARGET \
  __attribute__((              \
      target("avx2,bmi,bmi2,popcnt,lzcnt,avx512f,avx512bw,avx512vl,avx512dq,avx512cd,avx512vbmi,avx512vbmi2,gfni")))
#define MILLRACE_PACKED_INLINE MILLRACE_PACKED_TARGET inline __attribute__((always_inline))

namespace millrace::kernels::packed {
namespace {

// A row of 8 bytes for each width, modulo 8, so that vpermq picks the lanes' rows.
struct LaneTables {
  alignas(64) std::uint8_t shift[8][64];  // by the first value's place in its byte: where each value begins
  alignas(64) std::uint64_t extend[8];    // bit matrices that leave a value's bits and extend its sign
  alignas(64) std::uint8_t lane_of[64];   // of a byte, within 128 bits
  alignas(64) std::uint8_t within[64];    // its place in its lane
  alignas(64) std::uint8_t four[64];      // 0 1 2 3 0 1 2 3 ...
  alignas(64) std::uint16_t iota[32];     // 0 1 2 ...
  alignas(64) std::uint16_t back[5][32];  // words 1, 2, 4, 8 and 16 before
};
constexpr LaneTables make_lane_tables() {
  LaneTables tables{};
  for (unsigned bit = 0; bit < 8; ++bit) {
    for (unsigned width = 1; width <= 8; ++width) {
      for (unsigned j = 0; j < 8; ++j)
        tables.shift[bit][8 * (width & 7) + j] = static_cast<std::uint8_t>(j * width + bit);
    }
  }
  for (unsigned width = 1; width <= 8; ++width) {
    for (unsigned i = 0; i < 8; ++i)
      tables.extend[width & 7] |= static_cast<std::uint64_t>(1U << (i < width ? i : width - 1)) << (8 * (7 - i));
  }
  for (unsigned i = 0; i < 64; ++i) {
    tables.lane_of[i] = static_cast<std::uint8_t>(i / 8);
    tables.within[i] = static_cast<std::uint8_t>(i % 8);
    tables.four[i] = static_cast<std::uint8_t>(i % 4);
  }
  for (unsigned i = 0; i < 32; ++i) tables.iota[i] = static_cast<std::uint16_t>(i);
  for (unsigned step = 0; step < 5; ++step) {
    for (unsigned i = 0; i < 32; ++i)
      tables.back[step][i] = static_cast<std::uint16_t>(i < 1U << step ? 0 : i - (1U << step));
  }
  return tables;
}
constexpr LaneTables kLaneTables = make_lane_tables();

MILLRACE_PACKED_INLINE std::uint64_t load_word(const std::uint8_t* from) {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// Differences of 16 blocks: `run` 0 or 1 says which. Each is of 32 bits, with its sign.
MILLRACE_PACKED_INLINE __m512i sixteen_differences(__m512i data, __m512i widths, __m512i starts, int run) {
  const __m512i which = _mm512_set_epi32(1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0);
  const __m512i pick = _mm512_add_epi32(which, _mm512_set1_epi32(2 * run));
  const __m512i rank = _mm512_set_epi32(7, 6, 5, 4, 3, 2, 1, 0, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i width = _mm512_permutexvar_epi32(pick, widths);
  const __m512i bit = _mm512_mullo_epi32(width, rank);
  const __m512i byte = _mm512_add_epi32(_mm512_permutexvar_epi32(pick, starts), _mm512_srli_epi32(bit, 3));
  const __m512i four = _mm512_load_si512(kLaneTables.four);
  const __m512i index = _mm512_add_epi8(_mm512_mullo_epi32(byte, _mm512_set1_epi32(0x01010101)), four);
  const __m512i word =
      _mm512_srlv_epi32(_mm512_permutexvar_epi8(index, data), _mm512_and_si512(bit, _mm512_set1_epi32(7)));
  const __m512i up = _mm512_sub_epi32(_mm512_set1_epi32(32), width);
  return _mm512_srav_epi32(_mm512_sllv_epi32(word, up), up);  // a width of 0 is shifted out
}

template <int kStep>
MILLRACE_PACKED_INLINE __m512i add_before(__m512i sum, __m512i of) {
  constexpr auto kThere = static_cast<__mmask32>(~0U << (1U << kStep));
  return _mm512_add_epi16(sum, _mm512_maskz_permutexvar_epi16(kThere, _mm512_load_si512(kLaneTables.back[kStep]), of));
}

// DC levels of all blocks of a group; of those that it does not have, anything.
MILLRACE_PACKED_INLINE __m512i levels_of(const layout::Parts& parts) {
  const std::uint64_t widths = _pdep_u64(parts.dc_widths, 0x000F000F000F000F);
  const std::uint64_t starts = widths * 0x0001000100010000;  // bytes: eight values of w bits are w bytes
  const __m512i data = _mm512_loadu_si512(parts.differences);
  const __m512i wide_widths =
      _mm512_castsi128_si512(_mm_cvtepu16_epi32(_mm_cvtsi64_si128(static_cast<long long>(widths))));
  const __m512i wide_starts =
      _mm512_castsi128_si512(_mm_cvtepu16_epi32(_mm_cvtsi64_si128(static_cast<long long>(starts))));
  const __m256i low = _mm512_cvtepi32_epi16(sixteen_differences(data, wide_widths, wide_starts, 0));
  const __m256i high = _mm512_cvtepi32_epi16(sixteen_differences(data, wide_widths, wide_starts, 1));
  const __m512i differences = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  // The first difference is the second block's.
  __m512i sum = _mm512_maskz_permutexvar_epi16(0xFFFFFFFE, _mm512_load_si512(kLaneTables.back[0]), differences);
  sum = _mm512_mask_set1_epi16(sum, 1, parts.level);
  sum = add_before<0>(sum, sum);
  sum = add_before<1>(sum, sum);
  sum = add_before<2>(sum, sum);
  sum = add_before<3>(sum, sum);
  return add_before<4>(sum, sum);
}

// How far a group's blocks were read: bits of its values, and where the bitmaps that were read begin.
struct Progress {
  std::uint64_t bit;
  const std::uint8_t* bitmaps;
};

// A bit for each coefficient, DC's being 0.
MILLRACE_PACKED_INLINE std::uint64_t take_bitmap(const Shape& shape, Progress& progress) {
  progress.bitmaps -= shape.bitmap_bytes;
  progress.bit = (progress.bit + shape.align) & ~std::uint64_t{shape.align};
  return _bzhi_u64(load_word(progress.bitmaps), 8 * shape.bitmap_bytes) << 1;
}

MILLRACE_PACKED_INLINE std::uint64_t count_of(std::uint64_t bitmap) {
  return static_cast<std::uint64_t>(_mm_popcnt_u64(bitmap));
}

// Bits of `count` values in lanes; at most 63.
MILLRACE_PACKED_INLINE std::uint64_t bits_of(const Shape& shape, std::uint64_t count) {
  const std::uint64_t at = count & 56;
  return 8 * (shape.starts >> at & 255) + (count & 7) * (shape.widths >> at & 255);
}

// A block's values as its lanes have them, a byte each, one behind the other.
MILLRACE_PACKED_INLINE __m512i values_of(const Shape& shape, const std::uint8_t* values, std::uint64_t bit) {
  const __m512i data = _mm512_loadu_si512(values + (bit >> 3));
  const __m512i lane_of = _mm512_load_si512(kLaneTables.lane_of);
  const __m512i starts = _mm512_shuffle_epi8(_mm512_set1_epi64(static_cast<long long>(shape.starts)), lane_of);
  const __m512i index = _mm512_add_epi8(starts, _mm512_load_si512(kLaneTables.within));
  const __m512i source = _mm512_permutexvar_epi8(index, data);
  const __m512i widths = _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(&shape.widths)));
  const __m512i shift = _mm512_permutexvar_epi64(widths, _mm512_load_si512(kLaneTables.shift[bit & 7]));
  const __m512i extend = _mm512_permutexvar_epi64(widths, _mm512_load_si512(kLaneTables.extend));
  return _mm512_gf2p8affine_epi64_epi8(_mm512_multishift_epi64_epi8(shift, source), extend, 0);
}

// There is no 0 among the values: what is not negative stands for one more.
MILLRACE_PACKED_INLINE __m512i with_zero(__m512i bytes) {
  const __m512i sign = _mm512_set1_epi8(static_cast<char>(0x80));
  return _mm512_sub_epi8(bytes, _mm512_gf2p8affine_epi64_epi8(bytes, sign, 0xFF));
}

// A block's coefficients in zig-zag order, DC's being 0.
struct Coefficients {
  __m512i low, high;
};

MILLRACE_PACKED_INLINE long long a_byte_each(std::uint64_t nibbles) {
  return static_cast<long long>(_pdep_u64(nibbles, 0x0F0F0F0F0F0F0F0F));
}

// The rare blocks, with values beyond a byte. `bytes`: values_of(); `block`: as far as bytes hold them.
MILLRACE_PACKED_TARGET __attribute__((noinline, unused)) Coefficients take_wide(const Shape& shape,
                                                                                const std::uint8_t* values,
                                                                                std::uint64_t bitmap, __m512i bytes,
                                                                                Coefficients block,
                                                                                Progress& progress) {
  const std::uint64_t count = count_of(bitmap);
  const std::uint8_t* from = values + (progress.bit >> 3);
  const auto low_bits = static_cast<__mmask32>(bitmap), high_bits = static_cast<__mmask32>(bitmap >> 32);
  if (shape.raw != 0) {
    progress.bit += 16 * count;
    return {_mm512_maskz_expand_epi16(low_bits, _mm512_loadu_si512(from)),
            _mm512_maskz_expand_epi16(high_bits, _mm512_loadu_si512(from + 2 * _mm_popcnt_u32(low_bits)))};
  }
  const std::uint64_t wide = count < shape.nibbles ? count : shape.nibbles;
  const std::uint64_t nibbles_at = (progress.bit + bits_of(shape, count) + 7) >> 3;
  const std::uint64_t nibbles = load_word(values + nibbles_at);
  progress.bit = 8 * (nibbles_at + (4 * wide + 7) / 8);
  // The first 16 values as words: the nibble, with its sign, and the byte below.
  __m256i words = _mm256_cvtepu8_epi16(_mm_set_epi64x(a_byte_each(nibbles >> 32), a_byte_each(nibbles)));
  words = _mm256_srai_epi16(_mm256_slli_epi16(words, 12), 4);
  words = _mm256_or_si256(words, _mm256_cvtepu8_epi16(_mm512_castsi512_si128(bytes)));
  words = _mm256_sub_epi16(words, _mm256_cmpgt_epi16(words, _mm256_set1_epi16(-1)));
  // Where they belong: the first `wide` of the bitmap's places.
  const std::uint64_t places = _pdep_u64((std::uint64_t{1} << wide) - 1, bitmap);
  const auto low_places = static_cast<__mmask32>(places), high_places = static_cast<__mmask32>(places >> 32);
  const __m512i in_low = _mm512_castsi256_si512(words);
  const __m512i behind_low = _mm512_set1_epi16(static_cast<short>(_mm_popcnt_u32(low_places)));
  const __m512i index = _mm512_add_epi16(_mm512_load_si512(kLaneTables.iota), behind_low);
  return {_mm512_mask_expand_epi16(block.low, low_places, in_low),
          _mm512_mask_expand_epi16(block.high, high_places, _mm512_permutexvar_epi16(index, in_low))};
}

// The next block.
MILLRACE_PACKED_INLINE Coefficients take_block(const Shape& shape, const std::uint8_t* values, Progress& progress) {
  const std::uint64_t bitmap = take_bitmap(shape, progress);
  const __m512i bytes = values_of(shape, values, progress.bit);
  const __m512i placed = _mm512_maskz_expand_epi8(bitmap, with_zero(bytes));
  const Coefficients block{_mm512_cvtepi8_epi16(_mm512_castsi512_si256(placed)),
                           _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64(placed, 1))};
  if (__builtin_expect((shape.nibbles | shape.raw) != 0, 0))
    return take_wide(shape, values, bitmap, bytes, block, progress);
  progress.bit += bits_of(shape, count_of(bitmap));
  return block;
}

// The same, of which nothing is wanted.
MILLRACE_PACKED_INLINE void skip_block(const Shape& shape, Progress& progress) {
  const std::uint64_t count = count_of(take_bitmap(shape, progress));
  progress.bit += shape.raw != 0 ? 16 * count : bits_of(shape, count);
  if (shape.nibbles != 0) {
    const std::uint64_t wide = count < shape.nibbles ? count : shape.nibbles;
    progress.bit = 8 * (((progress.bit + 7) >> 3) + (4 * wide + 7) / 8);
  }
}

}  // namespace
}  // namespace millrace::kernels::packed
