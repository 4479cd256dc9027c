// Packing with AVX2. Without pext, which takes hundreds of cycles on Zen 2 and before: the eight values of a lane are
// joined by halves, four lanes at a time. Two passes over a group, because a load would wait for the stores that it
// covers.
#include "kernels/packed/pack_group.h"
#include "kernels/packed/shapes.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/jpeg/ordinary.h"

#define MILLRACE_PACKED_TARGET __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt")))
#define MILLRACE_PACKED_INLINE MILLRACE_PACKED_TARGET inline __attribute__((always_inline))

namespace millrace::kernels::packed {
namespace {

using jpeg::kCoefficients;

struct Tables {
  alignas(32) std::uint8_t lane_of[2][32];   // of a byte: which byte of a shape's widths is its lane's
  alignas(32) std::uint8_t fields[32];       // by width: bits of a byte; in both halves
  alignas(64) std::uint8_t squeeze[256][8];  // by a byte of the bitmap: where its values are, 0x80: no more
};
constexpr Tables make_tables() {
  Tables tables{};
  for (unsigned i = 0; i < 32; ++i) {
    for (unsigned half = 0; half < 2; ++half) tables.lane_of[half][i] = static_cast<std::uint8_t>(4 * half + i / 8);
    if (i % 16 <= 8) tables.fields[i] = static_cast<std::uint8_t>((1U << (i % 16)) - 1);
  }
  for (unsigned bits = 0; bits < 256; ++bits) {
    unsigned count = 0;
    for (unsigned i = 0; i < 8; ++i) {
      if ((bits >> i & 1) != 0) tables.squeeze[bits][count++] = static_cast<std::uint8_t>(i);
    }
    while (count < 8) tables.squeeze[bits][count++] = 0x80;
  }
  return tables;
}
constexpr Tables kTables = make_tables();

// A group's blocks after the first pass.
struct Squeezed {
  alignas(64) std::uint8_t values[kGroupBlocks][kCoefficients + 32];  // without a 0 among them; zeros follow
  std::uint64_t bitmaps[kGroupBlocks];                                // a bit for each coefficient, DC's being 0
  std::uint32_t wide = 0;                                             // blocks with values that a byte does not hold
};

MILLRACE_PACKED_INLINE __m256i load_table(const void* table) {
  return _mm256_load_si256(static_cast<const __m256i*>(table));
}

// 16 coefficients from `first` on: without 0 among the values.
struct Words {
  __m256i stored, is_zero, magnitude;
};
MILLRACE_PACKED_INLINE Words read_words(const std::int16_t* block, std::size_t first, const Limits& limits,
                                        __m256i& beyond) {
  const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + first));
  const __m256i harmless = load_table(limits.harmless.data() + first);
  beyond = _mm256_or_si256(beyond, _mm256_subs_epu16(_mm256_abs_epi16(words), harmless));
  const __m256i zero = _mm256_setzero_si256();
  const __m256i stored = _mm256_add_epi16(words, _mm256_cmpgt_epi16(words, zero));
  return {stored, _mm256_cmpeq_epi16(words, zero), _mm256_xor_si256(stored, _mm256_srai_epi16(stored, 15))};
}

MILLRACE_PACKED_INLINE __m256i bytes_of(__m256i low, __m256i high) {
  return _mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xD8);
}
MILLRACE_PACKED_INLINE std::uint64_t not_zero(const Words& low, const Words& high) {
  return ~static_cast<std::uint32_t>(_mm256_movemask_epi8(bytes_of(low.is_zero, high.is_zero)));
}

MILLRACE_PACKED_INLINE void squeeze(const std::uint8_t* bytes, std::uint64_t bitmap, std::uint8_t* out) {
  for (; bitmap != 0; bitmap >>= 8, bytes += 8) {
    const __m128i from = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kTables.squeeze[bitmap & 255]));
    const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_shuffle_epi8(eight, from));
    out += _mm_popcnt_u32(static_cast<unsigned>(bitmap & 255));
  }
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_setzero_si256());
}

// False: out of the ordinary.
MILLRACE_PACKED_INLINE bool squeeze_block(const std::int16_t* block, const Limits& limits, int index, Squeezed& out) {
  __m256i beyond = _mm256_setzero_si256();
  const Words a = read_words(block, 0, limits, beyond), b = read_words(block, 16, limits, beyond);
  const Words c = read_words(block, 32, limits, beyond), d = read_words(block, 48, limits, beyond);
  if (__builtin_expect(_mm256_testz_si256(beyond, beyond) == 0, 0) && !jpeg::is_ordinary(block, limits.quant))
    return false;
  const std::uint64_t bitmap = (not_zero(a, b) & 0xFFFFFFFE) | not_zero(c, d) << 32;
  out.bitmaps[index] = bitmap;
  const __m256i of_ac = _mm256_andnot_si256(_mm256_set_epi64x(0, 0, 0, 0xFFFF), a.magnitude);
  const __m256i most =
      _mm256_max_epu16(_mm256_max_epu16(of_ac, b.magnitude), _mm256_max_epu16(c.magnitude, d.magnitude));
  const __m256i wide = _mm256_subs_epu16(most, _mm256_set1_epi16(126));
  if (__builtin_expect(_mm256_testz_si256(wide, wide) == 0, 0)) {
    out.wide |= 1U << index;
    return true;
  }
  alignas(32) std::uint8_t bytes[kCoefficients];
  _mm256_store_si256(reinterpret_cast<__m256i*>(bytes), bytes_of(a.stored, b.stored));
  _mm256_store_si256(reinterpret_cast<__m256i*>(bytes + 32), bytes_of(c.stored, d.stored));
  squeeze(bytes, bitmap, out.values[index]);
  return true;
}

// What a lane of eight bytes needs: bits of the largest magnitude and one for the sign.
MILLRACE_PACKED_INLINE std::uint32_t needed_width(std::uint64_t lane) {
  const std::uint64_t negative = lane >> 7 & 0x0101010101010101;
  std::uint64_t magnitude = lane ^ ((negative << 8) - negative);
  magnitude |= magnitude >> 32;
  magnitude |= magnitude >> 16;
  magnitude |= magnitude >> 8;
  return 33 - _lzcnt_u32(static_cast<unsigned>(magnitude & 255));
}

// The values of lanes 4 * kHalf and on: eight of them in so many low bits as their widths take.
template <int kHalf>
MILLRACE_PACKED_INLINE __m256i join_lanes(__m256i values, const Shape& shape) {
  const __m256i all_widths = _mm256_set1_epi64x(static_cast<long long>(shape.widths));
  const __m256i widths = _mm256_shuffle_epi8(all_widths, load_table(kTables.lane_of[kHalf]));
  const __m256i of_eight = _mm256_and_si256(widths, _mm256_set1_epi64x(255));
  const __m256i of_four = _mm256_and_si256(widths, _mm256_set1_epi32(255));
  values = _mm256_and_si256(values, _mm256_shuffle_epi8(load_table(kTables.fields), widths));
  __m256i odd = _mm256_and_si256(values, _mm256_set1_epi16(static_cast<short>(0xFF00)));
  odd = _mm256_srlv_epi32(odd, _mm256_sub_epi32(_mm256_set1_epi32(8), of_four));
  values = _mm256_or_si256(_mm256_and_si256(values, _mm256_set1_epi16(0xFF)), odd);
  const __m256i zero = _mm256_setzero_si256();
  odd = _mm256_srlv_epi32(_mm256_blend_epi16(zero, values, 0xAA),
                          _mm256_sub_epi32(_mm256_set1_epi32(16), _mm256_slli_epi32(of_four, 1)));
  values = _mm256_or_si256(_mm256_blend_epi16(values, zero, 0xAA), odd);
  odd = _mm256_srlv_epi64(_mm256_blend_epi32(zero, values, 0xAA),
                          _mm256_sub_epi64(_mm256_set1_epi64x(32), _mm256_slli_epi64(of_eight, 2)));
  return _mm256_or_si256(_mm256_blend_epi32(values, zero, 0xAA), odd);
}

// Nibbles of values that bytes hold. There are such blocks: a wider lane can be cheaper than all others that hold it.
MILLRACE_PACKED_TARGET __attribute__((noinline)) void put_signs(const std::uint8_t* values, unsigned count,
                                                                BitWriter& out) {
  out.align();
  for (unsigned rank = 0; rank < count; ++rank) out.put((values[rank] & 0x80) != 0 ? 15 : 0, 4);
  out.align();
}

// Its shape. No value is wide.
MILLRACE_PACKED_INLINE std::uint8_t put_values(const std::uint8_t* values, std::uint64_t bitmap, ShapeChooser& chooser,
                                               BitWriter& out) {
  const auto count = static_cast<unsigned>(_mm_popcnt_u64(bitmap));
  std::uint32_t widths = 0;
  for (unsigned first = 0; first < count; first += 8) {
    std::uint64_t lane;
    std::memcpy(&lane, values + first, sizeof lane);
    widths |= needed_width(lane) << (first / 2);
  }
  const int id = chooser.choose({widths, bitmap_bytes(bitmap), count});
  const Shape& shape = kShapes[static_cast<std::size_t>(id)];
  if (shape.align != 0) out.align();
  alignas(32) std::uint64_t lanes[kLanes];
  const __m256i first = load_table(values);
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), join_lanes<0>(first, shape));
  if (count > 32) {
    const __m256i second = load_table(values + 32);
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes + 4), join_lanes<1>(second, shape));
  }
  std::uint64_t left_widths = shape.widths;
  for (unsigned lane = 0, left = count; left > 0; ++lane, left_widths >>= 8) {
    const unsigned here = left < 8 ? left : 8;
    out.put(lanes[lane], static_cast<unsigned>(left_widths & 255) * here);
    left -= here;
  }
  if (__builtin_expect(shape.nibbles != 0, 0)) put_signs(values, count < shape.nibbles ? count : shape.nibbles, out);
  return static_cast<std::uint8_t>(id);
}

}  // namespace

MILLRACE_PACKED_TARGET std::size_t pack_group_avx2(const Blocks& blocks, const Limits& limits, ShapeChooser& chooser,
                                                   std::uint8_t* out) {
  Squeezed squeezed;
  for (int i = 0; i < blocks.count; ++i) {
    if (!squeeze_block(blocks.at[i], limits, i, squeezed)) return 0;
  }
  std::uint8_t* const shapes = out + layout::kGroupHeadBytes;
  BitWriter bits(shapes + blocks.count);
  put_differences(blocks, out, bits);
  for (int i = 0; i < blocks.count; ++i) {
    const bool wide = (squeezed.wide >> i & 1) != 0;
    shapes[i] = wide ? pack_values(blocks.at[i], squeezed.bitmaps[i], chooser, bits)
                     : put_values(squeezed.values[i], squeezed.bitmaps[i], chooser, bits);
  }
  bits.align();
  return static_cast<std::size_t>(put_bitmaps(squeezed.bitmaps, shapes, blocks.count, bits.end()) - out);
}

}  // namespace millrace::kernels::packed

#endif
