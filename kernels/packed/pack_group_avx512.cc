// Packing with AVX-512 (VBMI2).
#include "kernels/packed/pack_group.h"
#include "kernels/packed/shapes.h"

#if defined(__x86_64__)

// g++ 12 takes its own intrinsics' deliberately undefined operands for mistakes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include "kernels/jpeg/ordinary.h"

#define MILLRACE_PACKED_TARGET                                                                                \
  __attribute__((                                                                                             \
      target("avx2,bmi,bmi2,popcnt,lzcnt,avx512f,avx512bw,avx512vl,avx512dq,avx512cd,avx512vbmi,avx512vbmi2," \
             "avx512vnni")))
#define MILLRACE_PACKED_INLINE MILLRACE_PACKED_TARGET inline __attribute__((always_inline))

namespace millrace::kernels::packed {
namespace {

// By width: that many of the low bits of each byte.
constexpr std::array<std::uint64_t, 9> kFields = [] {
  std::array<std::uint64_t, 9> fields{};
  for (unsigned width = 0; width <= 8; ++width) fields[width] = 0x0101010101010101U * ((1U << width) - 1);
  return fields;
}();
constexpr std::uint64_t kNibbles = 0x0F0F0F0F0F0F0F0F;

// A block's coefficients, without a 0 among the values, and what is known of them.
struct Block {
  __m512i low, high;     // words, DC among them
  std::uint64_t bitmap;  // a bit for each AC coefficient
  unsigned count;
  std::uint64_t wide;  // which values a byte does not hold, by rank
  bool raw;            // 12 bits do not, or not where they are
};

MILLRACE_PACKED_INLINE __m512i magnitude(__m512i words) {
  return _mm512_xor_si512(words, _mm512_srai_epi16(words, 15));
}

MILLRACE_PACKED_INLINE __m512i without_zero(__m512i words) {
  const __mmask32 positive = _mm512_cmpgt_epi16_mask(words, _mm512_setzero_si512());
  return _mm512_mask_sub_epi16(words, positive, words, _mm512_set1_epi16(1));
}

// `low` and `high`: magnitudes of which some is 127 or more.
MILLRACE_PACKED_TARGET __attribute__((noinline)) void look_at_wide(__m512i low, __m512i high, Block& block) {
  const __m512i most = _mm512_set1_epi16(126);
  const std::uint64_t beyond =
      _mm512_cmpgt_epu16_mask(low, most) | static_cast<std::uint64_t>(_mm512_cmpgt_epu16_mask(high, most)) << 32;
  block.wide = _pext_u64(beyond, block.bitmap);
  const __m512i upper = _mm512_set1_epi16(static_cast<short>(0xF800));
  block.raw = block.wide >> 16 != 0 || _mm512_test_epi16_mask(_mm512_or_si512(low, high), upper) != 0;
}

MILLRACE_PACKED_INLINE Block read_block(__m512i low, __m512i high) {
  Block block;
  block.bitmap =
      (_mm512_test_epi16_mask(low, low) | static_cast<std::uint64_t>(_mm512_test_epi16_mask(high, high)) << 32) &
      ~std::uint64_t{1};
  block.count = static_cast<unsigned>(_mm_popcnt_u64(block.bitmap));
  block.low = without_zero(low);
  block.high = without_zero(high);
  block.wide = 0;
  block.raw = false;
  const __m512i low_magnitude = _mm512_maskz_mov_epi16(0xFFFFFFFE, magnitude(block.low));
  const __m512i high_magnitude = magnitude(block.high);
  const __m512i most = _mm512_max_epu16(low_magnitude, high_magnitude);
  if (__builtin_expect(_mm512_cmpgt_epu16_mask(most, _mm512_set1_epi16(126)) != 0, 0))
    look_at_wide(low_magnitude, high_magnitude, block);
  return block;
}

// The lowest bytes of all words, and of the upper ones.
MILLRACE_PACKED_INLINE __m512i bytes_of(__m512i low, __m512i high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi16_epi8(low)), _mm512_cvtepi16_epi8(high), 1);
}

// What each lane needs, a nibble each.
MILLRACE_PACKED_INLINE std::uint32_t needed_widths(const Block& block, __m512i values) {
  __m512i all = _mm512_xor_si512(values, _mm512_movm_epi8(_mm512_movepi8_mask(values)));
  all = _mm512_or_si512(all, _mm512_srli_epi64(all, 32));
  all = _mm512_or_si512(all, _mm512_srli_epi64(all, 16));
  all = _mm512_or_si512(all, _mm512_srli_epi64(all, 8));
  const __m512i width =
      _mm512_sub_epi64(_mm512_set1_epi64(65), _mm512_lzcnt_epi64(_mm512_and_si512(all, _mm512_set1_epi64(255))));
  auto widths = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm512_cvtepi64_epi8(width)));
  widths = _bzhi_u64(widths, (block.count + 7) & ~7U);
  if (__builtin_expect(block.wide != 0, 0)) {
    const std::uint64_t lanes = block.wide > 255 ? 0xFFFF : 0xFF;
    widths = (widths & ~lanes) | (lanes & (kWideWidth * 0x0101U));
  }
  return static_cast<std::uint32_t>(_pext_u64(widths, kNibbles));
}

MILLRACE_PACKED_TARGET __attribute__((noinline)) void put_nibbles(const Shape& shape, const Block& block,
                                                                  BitWriter& out) {
  const __m512i upper = bytes_of(_mm512_srai_epi16(block.low, 8), _mm512_srai_epi16(block.high, 8));
  const __m128i first = _mm512_castsi512_si128(_mm512_maskz_compress_epi8(block.bitmap, upper));
  const std::uint64_t nibbles = _pext_u64(static_cast<std::uint64_t>(_mm_cvtsi128_si64(first)), kNibbles) |
                                _pext_u64(static_cast<std::uint64_t>(_mm_extract_epi64(first, 1)), kNibbles) << 32;
  const unsigned bits = 4 * (block.count < shape.nibbles ? block.count : shape.nibbles);
  out.align();
  out.put(_bzhi_u64(nibbles, bits), bits);
  out.align();
}

// Its shape.
MILLRACE_PACKED_INLINE std::uint8_t put_values(const Block& block, ShapeChooser& chooser, BitWriter& out) {
  const __m512i values = _mm512_maskz_compress_epi8(block.bitmap, bytes_of(block.low, block.high));
  const std::uint32_t widths = needed_widths(block, values);
  const int id = chooser.choose({widths, bitmap_bytes(block.bitmap), block.count});
  const Shape& shape = kShapes[static_cast<std::size_t>(id)];
  if (shape.align != 0) out.align();
  alignas(64) std::uint64_t lanes[kLanes];
  _mm512_store_si512(lanes, values);
  std::uint64_t left_widths = shape.widths;
  for (unsigned lane = 0, left = block.count; left > 0; ++lane, left_widths >>= 8) {
    const auto width = static_cast<unsigned>(left_widths & 255);
    const unsigned here = left < 8 ? left : 8;
    out.put(_bzhi_u64(_pext_u64(lanes[lane], kFields[width]), width * here), width * here);
    left -= here;
  }
  if (__builtin_expect(shape.nibbles != 0, 0)) put_nibbles(shape, block, out);
  return static_cast<std::uint8_t>(id);
}

MILLRACE_PACKED_INLINE bool is_allowed(__m512i low, __m512i high, const Limits& limits, const std::int16_t* block) {
  const __mmask32 beyond =
      _mm512_cmpgt_epu16_mask(_mm512_abs_epi16(low), _mm512_load_si512(limits.harmless.data())) |
      _mm512_cmpgt_epu16_mask(_mm512_abs_epi16(high), _mm512_load_si512(limits.harmless.data() + 32));
  return __builtin_expect(beyond == 0, 1) || jpeg::is_ordinary(block, limits.quant);
}

// Differences of ordinary levels are within 16 bits.
MILLRACE_PACKED_INLINE void put_all_differences(const Blocks& blocks, std::uint8_t* head, BitWriter& out) {
  alignas(64) std::int16_t levels[kGroupBlocks + 32] = {};
  for (int i = 0; i < blocks.count; ++i) levels[i] = blocks.at[i][0];
  const auto there = static_cast<__mmask32>(_bzhi_u32(~0U, static_cast<unsigned>(blocks.count - 1)));
  const __m512i differences = _mm512_maskz_sub_epi16(there, _mm512_loadu_si512(levels + 1), _mm512_load_si512(levels));
  // Widths: of eight, bits of the largest magnitude and one for the sign; 0 where all are 0.
  __m512i most = magnitude(differences);
  most = _mm512_or_si512(most, _mm512_bsrli_epi128(most, 8));
  most = _mm512_or_si512(most, _mm512_srli_epi64(most, 32));
  most = _mm512_or_si512(most, _mm512_srli_epi64(most, 16));
  const __m512i any = _mm512_maskz_mov_epi64(0x55, _mm512_and_si512(most, _mm512_set1_epi64(0xFFFF)));
  const __m512i bits = _mm512_sub_epi64(_mm512_set1_epi64(65), _mm512_lzcnt_epi64(any));
  const __mmask32 moved = _mm512_test_epi16_mask(differences, differences);
  alignas(64) std::uint64_t widths[8];
  _mm512_store_si512(widths, bits);
  alignas(64) std::uint64_t fours[8];
  _mm512_store_si512(fours, differences);
  std::uint32_t all_widths = 0;
  for (unsigned run = 0, left = static_cast<unsigned>(blocks.count - 1); left > 0; ++run) {
    const unsigned here = left < 8 ? left : 8;
    const unsigned width = (moved >> (8 * run) & 255) == 0 ? 0 : static_cast<unsigned>(widths[2 * run]);
    all_widths |= width << (4 * run);
    const std::uint64_t field = 0x0001000100010001U * ((1U << width) - 1);
    const unsigned first = here < 4 ? here : 4, second = here - first;
    out.put(_bzhi_u64(_pext_u64(fours[2 * run], field), width * first), width * first);
    out.put(_bzhi_u64(_pext_u64(fours[2 * run + 1], field), width * second), width * second);
    left -= here;
  }
  out.align();
  std::memcpy(head, levels, 2);
  std::memcpy(head + 2, &all_widths, 2);
}

}  // namespace

MILLRACE_PACKED_TARGET std::size_t pack_group_avx512(const Blocks& blocks, const Limits& limits, ShapeChooser& chooser,
                                                     std::uint8_t* out) {
  std::uint8_t* const shapes = out + layout::kGroupHeadBytes;
  BitWriter bits(shapes + blocks.count);
  put_all_differences(blocks, out, bits);
  std::uint64_t bitmaps[kGroupBlocks];
  for (int i = 0; i < blocks.count; ++i) {
    const std::int16_t* const at = blocks.at[i];
    const __m512i low = _mm512_loadu_si512(at), high = _mm512_loadu_si512(at + 32);
    if (!is_allowed(low, high, limits, at)) return 0;
    const Block block = read_block(low, high);
    bitmaps[i] = block.bitmap;
    shapes[i] = __builtin_expect(block.raw, 0) ? pack_values(at, block.bitmap, chooser, bits)
                                               : put_values(block, chooser, bits);
  }
  bits.align();
  return static_cast<std::size_t>(put_bitmaps(bitmaps, shapes, blocks.count, bits.end()) - out);
}

}  // namespace millrace::kernels::packed

#endif
