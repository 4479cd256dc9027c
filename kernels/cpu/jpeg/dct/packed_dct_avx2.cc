// From packed coefficients to samples with AVX2, two blocks at a time, a block a 128-bit lane: they stay in registers
// from their values to rows of samples. A group is gone through once for where its blocks are; then
// blocks of a kind are taken together, which costs no branch a block: it would be mispredicted.
#include "kernels/cpu/jpeg/dct/packed_dct.h"

#if defined(__x86_64__)

#include "kernels/packed/unpack_avx2_lanes.h"
//
#include "kernels/cpu/jpeg/dct/packed_dct_avx2_lanes.h"

namespace millrace::kernels::jpeg {
namespace {

using packed::kGroupBlocks;

// What is known of a group's blocks before their values are looked at.
struct Found {
  std::uint64_t bitmaps[kGroupBlocks];  // a bit for each coefficient, DC's being 0
  std::uint32_t bits[kGroupBlocks];     // where their values begin
  std::int16_t levels[packed::kLevels];
  alignas(32) std::uint8_t counts[kGroupBlocks];  // of values
  alignas(32) std::uint8_t zeros[kGroupBlocks];   // of the coefficients behind the last value
  std::uint32_t wide = 0;                         // which blocks have values beyond a byte
};

MILLRACE_FUSED_TARGET void find_blocks(const packed::Group& group, const packed::layout::Parts& parts, int end,
                                       Found& found) {
  std::uint64_t bit = 0;
  const std::uint8_t* bitmaps = group.end;
  for (int i = 0; i < end; ++i) {
    const packed::Shape& shape = packed::kShapes[parts.shapes[i]];
    bitmaps -= shape.bitmap_bytes;
    const std::uint64_t bitmap = _bzhi_u64(packed::load_word(bitmaps), 8 * shape.bitmap_bytes) << 1;
    const auto count = static_cast<std::uint64_t>(_mm_popcnt_u64(bitmap));
    bit = (bit + shape.align) & ~std::uint64_t{shape.align};
    found.bitmaps[i] = bitmap;
    found.bits[i] = static_cast<std::uint32_t>(bit);
    found.counts[i] = static_cast<std::uint8_t>(count);
    found.zeros[i] = static_cast<std::uint8_t>(_lzcnt_u64(bitmap));
    if (__builtin_expect((shape.nibbles | shape.raw) == 0, 1)) {
      bit += packed::bits_of(shape, count);
      continue;
    }
    found.wide |= 1U << i;
    bit += shape.raw != 0 ? 16 * count : packed::bits_of(shape, count);
    if (shape.nibbles != 0) {
      const std::uint64_t wide = count < shape.nibbles ? count : shape.nibbles;
      bit = 8 * (((bit + 7) >> 3) + (4 * wide + 7) / 8);
    }
  }
}

// A bit for each block of which there are at least `least`.
MILLRACE_FUSED_INLINE std::uint32_t at_least(const std::uint8_t* numbers, int least) {
  const Vec all = _mm256_load_si256(reinterpret_cast<const Vec*>(numbers));
  return static_cast<std::uint32_t>(
      _mm256_movemask_epi8(_mm256_cmpgt_epi8(all, _mm256_set1_epi8(static_cast<char>(least - 1)))));
}

// A block whose turn it is.
struct Taken {
  const packed::Shape& shape;
  const std::uint8_t* from;  // its first value's byte
  std::uint32_t bit;         // and the bit in it
  std::uint64_t bitmap;
  std::int16_t level;
  std::uint8_t count;  // of values
};

class Loop {
 public:
  MILLRACE_FUSED_INLINE Loop(const PackedRun& run, const packed::layout::Parts& parts, const Found& found)
      : run_(run), parts_(parts), found_(found) {}

  MILLRACE_FUSED_INLINE Taken taken(int i) const {
    return {packed::kShapes[parts_.shapes[i]],
            parts_.values + (found_.bits[i] >> 3),
            found_.bits[i] & 7,
            found_.bitmaps[i],
            found_.levels[i],
            found_.counts[i]};
  }

  MILLRACE_FUSED_INLINE std::uint8_t* out(int i) const { return run_.out + (i - run_.first) * kBlock; }

  // Rows of one or two blocks.
  MILLRACE_FUSED_INLINE void store(int a, int b, const Vec samples[4]) const {
    store_lane<0>(out(a), samples);
    store_lane<1>(out(b), samples);
  }

 private:
  template <int kLane>
  MILLRACE_FUSED_INLINE void store_lane(std::uint8_t* to, const Vec samples[4]) const {
    for (int i = 0; i < 4; ++i, to += 2 * run_.stride) {
      const __m128i rows = _mm256_extracti128_si256(samples[i], kLane);
      _mm_storel_epi64(reinterpret_cast<__m128i*>(to), rows);
      _mm_storeh_pd(reinterpret_cast<double*>(to + run_.stride), _mm_castsi128_pd(rows));
    }
  }

  const PackedRun& run_;
  const packed::layout::Parts& parts_;
  const Found& found_;
};

// The first 16 values of two blocks as bytes.
MILLRACE_FUSED_INLINE Vec first_values(const Taken& a, const Taken& b) {
  const Vec lanes = of_both(packed::two_lanes<0>(a.shape, a.from), packed::two_lanes<0>(b.shape, b.from));
  const Vec bits = of_both(_mm_set1_epi64x(a.bit), _mm_set1_epi64x(b.bit));
  const Vec widths = of_both(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(&a.shape.widths)),
                             _mm_loadl_epi64(reinterpret_cast<const __m128i*>(&b.shape.widths)));
  const Vec lane_of =
      _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(packed::kTables.lane_of)));
  return packed::taken_apart(_mm256_srlv_epi64(lanes, bits), _mm256_shuffle_epi8(widths, lane_of));
}

// Which of a block's first 16 values go to coefficients 16 * kPart and on.
template <int kPart>
MILLRACE_FUSED_INLINE __m128i places_of(std::uint64_t bitmap) {
  constexpr std::uint64_t kEach = 0x0101010101010101;
  std::uint64_t low = packed::load_word(packed::kTables.expand[bitmap >> (16 * kPart) & 255]);
  std::uint64_t high = packed::load_word(packed::kTables.expand[bitmap >> (16 * kPart + 8) & 255]);
  if (kPart != 0) low += kEach * static_cast<std::uint64_t>(_mm_popcnt_u64(_bzhi_u64(bitmap, 16 * kPart)));
  high += kEach * static_cast<std::uint64_t>(_mm_popcnt_u64(_bzhi_u64(bitmap, 16 * kPart + 8)));
  return _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
}
template <int kPart>
MILLRACE_FUSED_INLINE Vec placed(Vec values, const Taken& a, const Taken& b) {
  return _mm256_shuffle_epi8(values, of_both(places_of<kPart>(a.bitmap), places_of<kPart>(b.bitmap)));
}

// The same of values in memory, any count of them.
template <int kPart>
MILLRACE_FUSED_INLINE __m128i placed(const std::uint8_t* values, std::uint64_t bitmap) {
  const auto low = _mm_popcnt_u64(_bzhi_u64(bitmap, 16 * kPart));
  const auto high = _mm_popcnt_u64(_bzhi_u64(bitmap, 16 * kPart + 8));
  const __m128i bytes = _mm_unpacklo_epi64(packed::load_eight(values + low), packed::load_eight(values + high));
  const __m128i places =
      _mm_unpacklo_epi64(packed::load_eight(packed::kTables.expand[bitmap >> (16 * kPart) & 255]),
                         packed::load_eight(packed::kTables.expand[bitmap >> (16 * kPart + 8) & 255]));
  return _mm_shuffle_epi8(bytes, _mm_or_si128(places, _mm_set_epi64x(0x0808080808080808, 0)));
}

MILLRACE_FUSED_INLINE Vec levels_of(const Taken& a, const Taken& b) {
  return of_both(_mm_cvtsi32_si128(a.level & 0xFFFF), _mm_cvtsi32_si128(b.level & 0xFFFF));
}

MILLRACE_FUSED_INLINE int next_of(std::uint32_t& blocks) {
  const int i = static_cast<int>(_tzcnt_u32(blocks));
  blocks &= blocks - 1;
  return i;
}

// Where there is an odd one, it goes with the blocks of the next kind, which is more general.
MILLRACE_FUSED_INLINE void even_out(std::uint32_t& blocks, std::uint32_t& next) {
  if ((_mm_popcnt_u32(blocks) & 1) == 0) return;
  next |= blocks & (0 - blocks);
  blocks &= blocks - 1;
}

// Blocks of DC alone.
MILLRACE_FUSED_TARGET void fill_blocks(std::uint32_t blocks, const PackedRun& run, const Found& found) {
  while (blocks != 0) {
    const int i = next_of(blocks);
    const auto level = static_cast<std::int16_t>(found.levels[i] * run.dequantiser->factors[0]);
    const __m128i sample = _mm_set1_epi16(static_cast<std::int16_t>(((level + 4) >> 3) + 128));
    const __m128i samples = _mm_packus_epi16(sample, sample);
    std::uint8_t* to = run.out + (i - run.first) * kBlock;
    for (int row = 0; row < kBlock; ++row, to += run.stride) _mm_storel_epi64(reinterpret_cast<__m128i*>(to), samples);
  }
}

// Dequantised rows of blocks, two by two, that wait for their transform. One loop for both would be so long that a
// processor sees little more than one turn of it at a time, and waits for results.
template <int kRows>
struct Waiting {
  struct Two {
    Vec rows[kRows];
    int first, second;
  };
  Two two[kGroupBlocks / 2 + 1];
  int count = 0;

  MILLRACE_FUSED_INLINE Vec* add(int first, int second) {
    Two& last = two[count++];
    last.first = first;
    last.second = second;
    return last.rows;
  }
};

// Those with nothing outside the corner.
MILLRACE_FUSED_TARGET void take_corners(std::uint32_t blocks, const Loop& loop, const Factors& factors) {
  Waiting<2> waiting;
  while (blocks != 0) {
    const int i = next_of(blocks), j = next_of(blocks);
    const Taken a = loop.taken(i), b = loop.taken(j);
    const Vec bytes = placed<0>(first_values(a, b), a, b);
    const auto* const from = reinterpret_cast<const Vec*>(kCorner.from);
    const Vec in02 = _mm256_or_si256(_mm256_srai_epi16(_mm256_shuffle_epi8(bytes, from[0]), 8), levels_of(a, b));
    const Vec in13 = _mm256_srai_epi16(_mm256_shuffle_epi8(bytes, from[1]), 8);
    Vec* const rows = waiting.add(i, j);
    rows[0] = _mm256_mullo_epi16(in02, factors.corner[0]);
    rows[1] = _mm256_mullo_epi16(in13, factors.corner[1]);
  }
  for (int i = 0; i < waiting.count; ++i) {
    const auto& [rows, first, second] = waiting.two[i];
    Vec samples[4];
    transform_corner(rows[0], rows[1], samples);
    loop.store(first, second, samples);
  }
}

// Those with at most 16 values, all among the first 32 coefficients.
template <Precision kPrecision>
MILLRACE_FUSED_TARGET void take_few(std::uint32_t blocks, const Loop& loop, const Factors& factors,
                                    Waiting<kBlock>& waiting) {
  while (blocks != 0) {
    const int i = next_of(blocks), j = next_of(blocks);
    const Taken a = loop.taken(i), b = loop.taken(j);
    const Vec bytes = first_values(a, b);
    const Vec quarters[kQuarters] = {placed<0>(bytes, a, b), placed<1>(bytes, a, b)};
    order_bytes<kPrecision, 2>(quarters, levels_of(a, b), factors, waiting.add(i, j));
  }
}

// Values of a group as bytes. `more`: the blocks with more than 32.
struct Values {
  alignas(64) std::uint8_t of[kGroupBlocks][kCoefficients + 16];
};
MILLRACE_FUSED_TARGET void find_values(std::uint32_t blocks, std::uint32_t more, const Loop& loop, Values& values) {
  while (blocks != 0) {
    const int i = next_of(blocks);
    const Taken block = loop.taken(i);
    const __m128i bit = _mm_cvtsi32_si128(static_cast<int>(block.bit));
    _mm256_storeu_si256(reinterpret_cast<Vec*>(values.of[i]), packed::four_lanes<0>(block.shape, block.from, bit));
  }
  while (more != 0) {
    const int i = next_of(more);
    const Taken block = loop.taken(i);
    const __m128i bit = _mm_cvtsi32_si128(static_cast<int>(block.bit));
    _mm256_storeu_si256(reinterpret_cast<Vec*>(values.of[i]) + 1, packed::four_lanes<1>(block.shape, block.from, bit));
  }
}

// All others whose values are bytes.
template <Precision kPrecision>
MILLRACE_FUSED_TARGET void take_many(std::uint32_t blocks, const Loop& loop, const Values& values,
                                     const Factors& factors, Waiting<kBlock>& waiting) {
  while (blocks != 0) {
    const int i = next_of(blocks), j = blocks != 0 ? next_of(blocks) : i;
    const Taken a = loop.taken(i), b = loop.taken(j);
    const std::uint8_t *const first = values.of[i], *const second = values.of[j];
    const Vec quarters[kQuarters] = {of_both(placed<0>(first, a.bitmap), placed<0>(second, b.bitmap)),
                                     of_both(placed<1>(first, a.bitmap), placed<1>(second, b.bitmap)),
                                     of_both(placed<2>(first, a.bitmap), placed<2>(second, b.bitmap)),
                                     of_both(placed<3>(first, a.bitmap), placed<3>(second, b.bitmap))};
    order_bytes<kPrecision, 4>(quarters, levels_of(a, b), factors, waiting.add(i, j));
  }
}

// The values of a block with some beyond a byte, as words.
MILLRACE_FUSED_INLINE void widen_values(const Taken& block, std::int16_t* words) {
  auto* const to = reinterpret_cast<Vec*>(words);
  const auto* const whole = reinterpret_cast<const Vec*>(block.from);
  if (block.shape.raw != 0) {
    for (int i = 0; i < 4; ++i) _mm256_storeu_si256(to + i, _mm256_loadu_si256(whole + i));
    return;
  }
  const Vec bytes[2] = {packed::four_lanes<0>(block.shape, block.from, _mm_setzero_si128()),
                        packed::four_lanes<1>(block.shape, block.from, _mm_setzero_si128())};
  for (int half = 0; half < 2; ++half) {
    _mm256_storeu_si256(to + 2 * half, _mm256_cvtepi8_epi16(_mm256_castsi256_si128(bytes[half])));
    _mm256_storeu_si256(to + 2 * half + 1, _mm256_cvtepi8_epi16(_mm256_extracti128_si256(bytes[half], 1)));
  }
  // The first ones: a nibble, with its sign, and the byte below.
  const __m128i nibbles = packed::load_eight(block.from + (packed::bits_of(block.shape, block.count) + 7) / 8);
  const __m128i low = _mm_set1_epi8(15);
  const __m128i turns = _mm_unpacklo_epi8(_mm_and_si128(nibbles, low), _mm_and_si128(_mm_srli_epi16(nibbles, 4), low));
  const __m128i below = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block.from));
  Vec first = _mm256_srai_epi16(_mm256_slli_epi16(_mm256_cvtepu8_epi16(turns), 12), 4);
  first = _mm256_or_si256(first, _mm256_cvtepu8_epi16(below));
  first = _mm256_sub_epi16(first, _mm256_cmpgt_epi16(first, _mm256_set1_epi16(-1)));  // there is no 0 among them
  _mm_storeu_si128(reinterpret_cast<__m128i*>(words), _mm256_castsi256_si128(first));
  if (block.shape.nibbles > 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(words) + 1, _mm256_extracti128_si256(first, 1));
}

// Coefficients 8 * kPart and on, of values that are words.
template <int kPart>
MILLRACE_FUSED_INLINE __m128i placed_words(const std::int16_t* words, std::uint64_t bitmap) {
  const auto before = _mm_popcnt_u64(_bzhi_u64(bitmap, 8 * kPart));
  __m128i places = packed::load_eight(packed::kTables.expand[bitmap >> (8 * kPart) & 255]);
  places = _mm_unpacklo_epi8(places, places);
  places = _mm_adds_epu8(_mm_adds_epu8(places, places), _mm_set1_epi16(0x0100));  // 0x80 stays above that
  return _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(words + before)), places);
}
template <int kPart>
MILLRACE_FUSED_INLINE Vec placed_words(const std::int16_t* first, const Taken& a, const std::int16_t* second,
                                       const Taken& b) {
  return of_both(placed_words<kPart>(first, a.bitmap), placed_words<kPart>(second, b.bitmap));
}

// The rare ones with values beyond a byte.
template <Precision kPrecision>
MILLRACE_FUSED_TARGET void take_wide(std::uint32_t blocks, const Loop& loop, const Factors& factors,
                                     Waiting<kBlock>& waiting) {
  alignas(64) std::int16_t words[kGroupBlocks][kCoefficients + 8];
  for (std::uint32_t left = blocks; left != 0;) {
    const int i = next_of(left);
    widen_values(loop.taken(i), words[i]);
  }
  while (blocks != 0) {
    const int i = next_of(blocks), j = blocks != 0 ? next_of(blocks) : i;
    const Taken a = loop.taken(i), b = loop.taken(j);
    const std::int16_t *const first = words[i], *const second = words[j];
    const Vec eighths[kEighths] = {placed_words<0>(first, a, second, b), placed_words<1>(first, a, second, b),
                                   placed_words<2>(first, a, second, b), placed_words<3>(first, a, second, b),
                                   placed_words<4>(first, a, second, b), placed_words<5>(first, a, second, b),
                                   placed_words<6>(first, a, second, b), placed_words<7>(first, a, second, b)};
    order_words<kPrecision>(eighths, levels_of(a, b), factors, waiting.add(i, j));
  }
}

template <Precision kPrecision>
MILLRACE_FUSED_TARGET void transform_waiting(Waiting<kBlock>& waiting, const Loop& loop) {
  for (int i = 0; i < waiting.count; ++i) {
    auto& two = waiting.two[i];
    Vec samples[4];
    transform_rows_of<kPrecision>(two.rows, samples);
    loop.store(two.first, two.second, samples);
  }
}

template <Precision kPrecision>
MILLRACE_FUSED_TARGET void transform_fused(const PackedRun& run) {
  const packed::layout::Parts parts = packed::layout::parts_of(run.group);
  const int end = run.first + run.count;
  Found found;
  packed::find_levels(parts, found.levels);
  find_blocks(run.group, parts, end, found);
  Factors factors;
  find_factors<kPrecision>(*run.dequantiser, factors);
  const Loop loop(run, parts, found);

  const std::uint32_t there = (0xFFFFFFFFU >> (kGroupBlocks - run.count)) << run.first;
  const std::uint32_t wide = found.wide & there;
  const std::uint32_t flat = at_least(found.zeros, 64) & there & ~wide;
  const std::uint32_t narrow = there & ~wide & ~flat;
  std::uint32_t corner = kPrecision == Precision::kExact ? narrow & at_least(found.zeros, 64 - kCornerEnd) : 0;
  std::uint32_t few = narrow & ~corner & at_least(found.zeros, 32) & ~at_least(found.counts, 17);
  std::uint32_t many = narrow & ~corner & ~few;
  even_out(corner, few);
  even_out(few, many);
  fill_blocks(flat, run, found);
  Values values;
  find_values(many, many & at_least(found.counts, 33), loop, values);
  Waiting<kBlock> waiting;
  take_corners(corner, loop, factors);
  take_few<kPrecision>(few, loop, factors, waiting);
  take_many<kPrecision>(many, loop, values, factors, waiting);
  if (wide != 0) take_wide<kPrecision>(wide, loop, factors, waiting);
  transform_waiting<kPrecision>(waiting, loop);
}

}  // namespace

MILLRACE_FUSED_TARGET void fused_exact_avx2(const PackedRun& run) {
  transform_fused<Precision::kExact>(run);
}
MILLRACE_FUSED_TARGET void fused_fast_avx2(const PackedRun& run) {
  transform_fused<Precision::kFast>(run);
}

}  // namespace millrace::kernels::jpeg

#endif  // __x86_64__
