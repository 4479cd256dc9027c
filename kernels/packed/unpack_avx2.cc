// Unpacking with AVX2. Without pdep, which takes hundreds of cycles on Zen 2 and before: the eight values of a lane are
// taken apart by halves, four lanes at a time. Two passes over a group, because a load would wait for a store that only
// covers a part of it.
#include <array>
#include <cstring>

#include "kernels/packed/layout.h"
#include "kernels/packed/shapes.h"
#include "kernels/packed/unpack.h"

#if defined(__x86_64__)

#include <immintrin.h>

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

// The values of lanes 4 * kHalf and on as bytes, one behind the other. They begin at bit `bit` of `from`.
template <int kHalf>
MILLRACE_PACKED_INLINE __m256i four_lanes(const Shape& shape, const std::uint8_t* from, __m128i bit) {
  const __m128i first =
      _mm_unpacklo_epi64(load_eight(lane_at(shape, from, 4 * kHalf)), load_eight(lane_at(shape, from, 4 * kHalf + 1)));
  const __m128i second = _mm_unpacklo_epi64(load_eight(lane_at(shape, from, 4 * kHalf + 2)),
                                            load_eight(lane_at(shape, from, 4 * kHalf + 3)));
  __m256i values = _mm256_srl_epi64(_mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1), bit);

  const __m256i all_widths = _mm256_set1_epi64x(static_cast<long long>(shape.widths));
  const __m256i widths = _mm256_shuffle_epi8(all_widths, load_table(kTables.lane_of[kHalf]));
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

// What the first pass finds out of a group's blocks.
struct Found {
  alignas(64) std::uint8_t values[kGroupBlocks][kCoefficients + 16];
  std::uint64_t bitmaps[kGroupBlocks];  // a bit for each coefficient, DC's being 0
  std::uint64_t places[kGroupBlocks];   // of wide blocks: the first value's bit
  std::uint32_t wide = 0;               // which blocks have values beyond a byte
  std::int16_t levels[kGroupBlocks];
};

void find_levels(const layout::Parts& parts, int end, std::int16_t* levels) {
  int level = parts.level;
  std::uint32_t bit = 0, widths = parts.dc_widths;
  levels[0] = parts.level;
  for (int i = 1; i < end; ++i) {
    const std::uint32_t width = widths >> ((i - 1) / 8 * 4) & 15;
    std::uint32_t word;
    std::memcpy(&word, parts.differences + bit / 8, sizeof word);
    const std::uint32_t up = 32 - width;
    level += width == 0 ? 0 : static_cast<std::int32_t>(word >> (bit % 8) << up) >> up;
    bit += width;
    levels[i] = static_cast<std::int16_t>(level);
  }
}

MILLRACE_PACKED_TARGET void find_values(const Group& group, const layout::Parts& parts, int first, int end,
                                        Found& found) {
  std::uint64_t bit = 0;
  const std::uint8_t* bitmaps = group.end;
  for (int i = 0; i < end; ++i) {
    const Shape& shape = kShapes[parts.shapes[i]];
    bitmaps -= shape.bitmap_bytes;
    const std::uint64_t bitmap = found.bitmaps[i] = _bzhi_u64(load_word(bitmaps), 8 * shape.bitmap_bytes) << 1;
    const auto count = static_cast<std::uint64_t>(_mm_popcnt_u64(bitmap));
    bit = (bit + shape.align) & ~std::uint64_t{shape.align};
    if (i >= first) {
      const std::uint8_t* const from = parts.values + (bit >> 3);
      const __m128i within = _mm_cvtsi32_si128(static_cast<int>(bit & 7));
      auto* const to = reinterpret_cast<__m256i*>(found.values[i]);
      _mm256_storeu_si256(to, four_lanes<0>(shape, from, within));
      if (count > 32) _mm256_storeu_si256(to + 1, four_lanes<1>(shape, from, within));
    }
    if (__builtin_expect((shape.nibbles | shape.raw) == 0, 1)) {
      bit += bits_of(shape, count);
      continue;
    }
    found.wide |= 1U << i;
    found.places[i] = bit;
    bit += shape.raw != 0 ? 16 * count : bits_of(shape, count);
    if (shape.nibbles != 0) {
      const std::uint64_t wide = count < shape.nibbles ? count : shape.nibbles;
      bit = 8 * (((bit + 7) >> 3) + (4 * wide + 7) / 8);
    }
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
MILLRACE_PACKED_TARGET __attribute__((noinline)) void place_wide(const Shape& shape, const std::uint8_t* from,
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

MILLRACE_PACKED_TARGET void unpack(const Group& group, int first, int count, std::int16_t* out) {
  const layout::Parts parts = layout::parts_of(group);
  Found found;
  find_levels(parts, first + count, found.levels);
  find_values(group, parts, first, first + count, found);
  for (int i = 0; i < count; ++i) {
    std::int16_t* const block = out + i * kCoefficients;
    place_values(found.values[first + i], found.bitmaps[first + i], block);
    block[0] = found.levels[first + i];
  }
  for (; found.wide != 0; found.wide &= found.wide - 1) {
    const int i = __builtin_ctz(found.wide);
    if (i < first) continue;
    place_wide(kShapes[parts.shapes[i]], parts.values + (found.places[i] >> 3), found.bitmaps[i],
               out + (i - first) * kCoefficients);
  }
}

}  // namespace

const Unpacker& avx2_unpacker() {
  static constexpr Unpacker kUnpacker{unpack};
  return kUnpacker;
}

}  // namespace millrace::kernels::packed

#endif
