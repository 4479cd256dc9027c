// Unpacking with AVX2, piece by piece, for the loops that do it: they include this in their namespace's reach and have
// the functions inlined. Without pdep, which takes hundreds of cycles on Zen 2 and before: the eight values of a lane
// are taken apart by halves, four lanes at a time. What they read lies within the bounds that README.md gives, whatever
// the bytes are.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "kernels/packed/layout.h"
#include "kernels/packed/shapes.h"

#define MILLRACE_PACKED_TARGET __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt")))
#define MILLRACE_PACKED_INLINE MILLRACE_PACKED_TARGET inline __attribute__((always_inline))

namespace millrace::kernels::packed {
namespace {

using jpeg::kCoefficients;

struct Tables {
  alignas(32) std::uint8_t lane_of[2][32];  // of a byte: which byte of a shape's widths is its lane's
  alignas(32) std::uint8_t fields[32];      // by width: bits of a byte; in both halves
  alignas(32) std::uint8_t signs[32];       // and the uppermost of them
  alignas(64) std::uint8_t expand[256][8];  // by a byte of the bitmap: which value goes where, 0x80: none
};
constexpr Tables make_tables() {
  Tables tables{};
  for (unsigned i = 0; i < 32; ++i) {
    for (unsigned half = 0; half < 2; ++half) tables.lane_of[half][i] = static_cast<std::uint8_t>(4 * half + i / 8);
    const unsigned width = i % 16;
    if (width < 1 || width > 8) continue;
    tables.fields[i] = static_cast<std::uint8_t>((1U << width) - 1);
    tables.signs[i] = static_cast<std::uint8_t>(1U << (width - 1));
  }
  for (unsigned bits = 0; bits < 256; ++bits) {
    for (unsigned i = 0, rank = 0; i < 8; ++i)
      tables.expand[bits][i] = static_cast<std::uint8_t>((bits >> i & 1) != 0 ? rank++ : 0x80);
  }
  return tables;
}
constexpr Tables kTables = make_tables();

MILLRACE_PACKED_INLINE std::uint64_t load_word(const std::uint8_t* from) {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}
MILLRACE_PACKED_INLINE __m128i load_eight(const std::uint8_t* from) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
}
MILLRACE_PACKED_INLINE __m256i load_table(const std::uint8_t* table) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(table));
}

// Bits of `count` values in lanes; at most 63.
MILLRACE_PACKED_INLINE std::uint64_t bits_of(const Shape& shape, std::uint64_t count) {
  const std::uint64_t at = count & 56;
  return 8 * (shape.starts >> at & 255) + (count & 7) * (shape.widths >> at & 255);
}

MILLRACE_PACKED_INLINE const std::uint8_t* lane_at(const Shape& shape, const std::uint8_t* from, int lane) {
  return from + reinterpret_cast<const std::uint8_t*>(&shape.starts)[lane];
}

// Four lanes, each from its first value's bit on, as bytes, one behind the other. `widths`: a lane's in each of its
// bytes.
MILLRACE_PACKED_INLINE __m256i taken_apart(__m256i values, __m256i widths) {
  const __m256i of_eight = _mm256_and_si256(widths, _mm256_set1_epi64x(255));
  const __m256i of_four = _mm256_and_si256(widths, _mm256_set1_epi32(255));
  // Eight values of a lane into four and four, those into two and two, and those into bytes.
  __m256i upper = _mm256_sllv_epi64(values, _mm256_sub_epi64(_mm256_set1_epi64x(32), _mm256_slli_epi64(of_eight, 2)));
  values = _mm256_blend_epi32(values, upper, 0xAA);
  upper = _mm256_sllv_epi32(values, _mm256_sub_epi32(_mm256_set1_epi32(16), _mm256_slli_epi32(of_four, 1)));
  values = _mm256_blend_epi16(values, upper, 0xAA);
  upper = _mm256_sllv_epi32(values, _mm256_sub_epi32(_mm256_set1_epi32(8), of_four));
  values = _mm256_blendv_epi8(values, upper, _mm256_set1_epi16(static_cast<short>(0xFF00)));

  const __m256i sign = _mm256_shuffle_epi8(load_table(kTables.signs), widths);
  values = _mm256_and_si256(values, _mm256_shuffle_epi8(load_table(kTables.fields), widths));
  values = _mm256_sub_epi8(_mm256_xor_si256(values, sign), sign);
  return _mm256_sub_epi8(values, _mm256_cmpgt_epi8(values, _mm256_set1_epi8(-1)));  // there is no 0 among them
}

template <int kLane>
MILLRACE_PACKED_INLINE __m128i two_lanes(const Shape& shape, const std::uint8_t* from) {
  return _mm_unpacklo_epi64(load_eight(lane_at(shape, from, kLane)), load_eight(lane_at(shape, from, kLane + 1)));
}

// The values of lanes 4 * kHalf and on. They begin at bit `bit` of `from`.
template <int kHalf>
MILLRACE_PACKED_INLINE __m256i four_lanes(const Shape& shape, const std::uint8_t* from, __m128i bit) {
  const __m128i first = two_lanes<4 * kHalf>(shape, from), second = two_lanes<4 * kHalf + 2>(shape, from);
  const __m256i values = _mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1);
  const __m256i all_widths = _mm256_set1_epi64x(static_cast<long long>(shape.widths));
  const __m256i widths = _mm256_shuffle_epi8(all_widths, load_table(kTables.lane_of[kHalf]));
  return taken_apart(_mm256_srl_epi64(values, bit), widths);
}

// Of DC differences of each width: the three bytes that each of eight has a part of, as the lower ones of a dword, and
// how far up it is shifted for the bits of others to go.
struct LevelTables {
  alignas(32) std::uint8_t bytes[16][32];
  alignas(32) std::uint32_t up[16][8];
};
constexpr LevelTables make_level_tables() {
  LevelTables tables{};
  for (unsigned width = 0; width < 16; ++width) {
    for (unsigned i = 0; i < 8; ++i) {
      const unsigned bit = i * width;
      for (unsigned byte = 0; byte < 4; ++byte) {
        const unsigned at = bit / 8 + byte;
        tables.bytes[width][4 * i + byte] = static_cast<std::uint8_t>(byte < 3 && at < 16 ? at : 0x80);
      }
      tables.up[width][i] = 32 - width - bit % 8;
    }
  }
  return tables;
}
constexpr LevelTables kLevelTables = make_level_tables();

// Eight differences of a width, which begin at a byte: eight of w bits are w bytes.
MILLRACE_PACKED_INLINE __m256i eight_differences(const std::uint8_t* from, std::uint32_t width) {
  const __m256i data = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  const __m256i up = _mm256_load_si256(reinterpret_cast<const __m256i*>(kLevelTables.up[width]));
  const __m256i words = _mm256_sllv_epi32(_mm256_shuffle_epi8(data, load_table(kLevelTables.bytes[width])), up);
  return _mm256_srav_epi32(words, _mm256_set1_epi32(static_cast<int>(32 - width)));
}

// Sums of 16 words up to each of them, and of `before`.
MILLRACE_PACKED_INLINE __m256i sums_of(__m256i words, __m256i before) {
  words = _mm256_add_epi16(words, _mm256_slli_si256(words, 2));
  words = _mm256_add_epi16(words, _mm256_slli_si256(words, 4));
  words = _mm256_add_epi16(words, _mm256_slli_si256(words, 8));
  const __m256i first_eight = _mm256_permute2x128_si256(words, words, 0x08);
  return _mm256_add_epi16(_mm256_add_epi16(words, before), _mm256_shuffle_epi8(first_eight, _mm256_set1_epi16(0x0F0E)));
}

// DC levels of all blocks of a group; of those that it does not have, anything.
constexpr int kLevels = kGroupBlocks + 16;  // so many are written
[[maybe_unused]] MILLRACE_PACKED_TARGET void find_levels(const layout::Parts& parts, std::int16_t levels[kLevels]) {
  const std::uint8_t* from = parts.differences;
  __m256i last = _mm256_set1_epi16(parts.level);
  std::uint32_t widths = parts.dc_widths;
  levels[0] = parts.level;
  for (int i = 0; i < kGroupBlocks; i += 16, widths >>= 8) {
    const std::uint32_t first = widths & 15, second = widths >> 4 & 15;
    const __m256i turned = _mm256_packs_epi32(eight_differences(from, first), eight_differences(from + first, second));
    from += first + second;
    const __m256i sums = sums_of(_mm256_permute4x64_epi64(turned, 0xD8), last);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(levels + i + 1), sums);
    last = _mm256_shuffle_epi8(_mm256_permute4x64_epi64(sums, 0xFF), _mm256_set1_epi16(0x0F0E));
  }
}

// Each part of eight coefficients takes as many values as its byte of the bitmap has bits.
template <unsigned kFirst, unsigned kEnd>
MILLRACE_PACKED_INLINE void place_parts(const std::uint8_t* values, std::uint64_t bitmap, std::int16_t* out) {
  for (unsigned part = kFirst; part < kEnd; ++part) {
    const auto before = _mm_popcnt_u64(_bzhi_u64(bitmap, 8 * part));
    const __m128i places = load_eight(kTables.expand[bitmap >> (8 * part) & 255]);
    const __m128i bytes = _mm_shuffle_epi8(load_eight(values + before), places);
    _mm_store_si128(reinterpret_cast<__m128i*>(out) + part, _mm_cvtepi8_epi16(bytes));
  }
}

MILLRACE_PACKED_INLINE void place_values(const std::uint8_t* values, std::uint64_t bitmap, std::int16_t* out) {
  place_parts<0, 4>(values, bitmap, out);
  if (bitmap >> 32 != 0) {
    place_parts<4, 8>(values, bitmap, out);
  } else {  // in photographs about every other block
    for (int i = 2; i < 4; ++i) _mm256_store_si256(reinterpret_cast<__m256i*>(out) + i, _mm256_setzero_si256());
  }
}

// Values beyond a byte: the rest of the block stands. `from`: its first value.
MILLRACE_PACKED_TARGET __attribute__((noinline, unused)) void place_wide(const Shape& shape, const std::uint8_t* from,
                                                                         std::uint64_t bitmap, std::int16_t* block) {
  if (shape.raw != 0) {
    for (; bitmap != 0; bitmap &= bitmap - 1, from += 2) std::memcpy(block + _tzcnt_u64(bitmap), from, sizeof *block);
    return;
  }
  const auto count = static_cast<std::uint64_t>(_mm_popcnt_u64(bitmap));
  const std::uint64_t wide = count < shape.nibbles ? count : shape.nibbles;
  std::uint64_t nibbles = load_word(from + (bits_of(shape, count) + 7) / 8);
  for (std::uint64_t rank = 0; rank < wide; ++rank, bitmap &= bitmap - 1, nibbles >>= 4) {
    const int value = static_cast<std::int16_t>(nibbles << 12) >> 4 | from[rank];
    block[_tzcnt_u64(bitmap)] = static_cast<std::int16_t>(value < 0 ? value : value + 1);
  }
}

}  // namespace
}  // namespace millrace::kernels::packed
