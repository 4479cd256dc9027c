// Unpacking with AVX2. Two passes over a group, because a load would wait for a store that only covers a part of it.
#include "kernels/packed/unpack.h"

#if defined(__x86_64__)

#include "kernels/packed/unpack_avx2_lanes.h"

namespace millrace::kernels::packed {
namespace {

// What the first pass finds out of a group's blocks.
struct Found {
  alignas(64) std::uint8_t values[kGroupBlocks][kCoefficients + 16];
  std::uint64_t bitmaps[kGroupBlocks];  // a bit for each coefficient, DC's being 0
  std::uint64_t places[kGroupBlocks];   // of wide blocks: the first value's bit
  std::uint32_t wide = 0;               // which blocks have values beyond a byte
  std::int16_t levels[kLevels];
};

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

MILLRACE_PACKED_TARGET void unpack(const Group& group, int first, int count, std::int16_t* out) {
  const layout::Parts parts = layout::parts_of(group);
  Found found;
  find_levels(parts, found.levels);
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
