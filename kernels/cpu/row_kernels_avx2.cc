// Resampling with AVX2. A weight of 24 bits is split into weight = high * 2^15 + low with low in [-2^14, 2^14), so that
// vpmaddwd sums two taps of eight outputs for each half without overflow; the two sums meet in one shift and one add.
// Exact: every step is modulo 2^32, as the definition's is.
//
// Quads are interleaved (row_kernels.h). The horizontal pass takes one pixel of four rows at a time; at the right end
// of a row the loads step back so that they end with the row, and pictures too narrow even for that go through the
// plain loop.
#include "kernels/cpu/row_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#define MILLRACE_AVX2 __attribute__((target("avx2")))

namespace millrace::kernels {
namespace {

constexpr int kLowBits = 15;
constexpr int kHalfOfHigh = 1 << (kPrecisionBits - 1 - kLowBits);
constexpr int kStepBack = 4;  // bytes; a block of RGB uses 12 of the 16 that are loaded

// Four weights as four dwords, each two words for vpmaddwd.
struct PackedBlock {
  std::int16_t high01[2];
  std::int16_t high23[2];
  std::int16_t low01[2];
  std::int16_t low23[2];
};
static_assert(sizeof(PackedBlock) == 16);

// `pairing`: which tap shares a dword with tap 0: its neighbour (1) or the one after (2).
void pack_weight(PackedBlock& block, int tap, std::int32_t weight, int pairing) {
  const std::int32_t high = (weight + (1 << (kLowBits - 1))) >> kLowBits;
  const std::int32_t low = weight - (high << kLowBits);
  const bool second_pair = pairing == 1 ? tap >= 2 : tap % 2 == 1;
  const int word = pairing == 1 ? tap % 2 : tap / 2;
  (second_pair ? block.high23 : block.high01)[word] = static_cast<std::int16_t>(high);
  (second_pair ? block.low23 : block.low01)[word] = static_cast<std::int16_t>(low);
}

void pack_block_weights(AxisTable& table, std::size_t first_block, int i, int position, int pairing) {
  const int taps = table.weights.taps;
  std::uint8_t* bytes = table.packed_bytes() + first_block * sizeof(PackedBlock);
  for (int t = 0; t < taps; ++t) {
    PackedBlock block;
    std::uint8_t* at = bytes + (position + t) / 4 * sizeof(PackedBlock);
    std::memcpy(&block, at, sizeof block);
    pack_weight(block, (position + t) % 4, table.weights.weight[static_cast<std::size_t>(i) * taps + t], pairing);
    std::memcpy(at, &block, sizeof block);
  }
}

void clear_lines(AxisTable& table) {
  const std::size_t bytes = static_cast<std::size_t>(table.spec.count) * table.blocks * sizeof(PackedBlock);
  table.lines.assign((bytes + sizeof(Line) - 1) / sizeof(Line), Line{});
}

void pack_columns(AxisTable& table) {
  const int channels = table.spec.channels;
  table.blocks = (table.weights.taps + 3) / 4;
  const int last_start = table.spec.in - 4 * table.blocks;
  const bool wide_enough = channels == 3 ? (last_start - 1) * channels >= kStepBack : last_start >= 0;
  table.packed_for = wide_enough ? Target::kAvx2 : Target::kScalar;
  if (!wide_enough) return;
  clear_lines(table);
  const int block_load = channels == 3 ? 16 : 4 * channels;
  table.steps.clear();
  table.plain_steps = 0;
  for (int x = 0; x < table.spec.count; ++x) {
    const int start = std::min(table.weights.start[x], last_start);
    table.steps.push_back({start * channels, 0});
    pack_block_weights(table, static_cast<std::size_t>(x) * table.blocks, x, table.weights.start[x] - start, 1);
    if ((start + 4 * (table.blocks - 1)) * channels + block_load <= table.spec.in * channels) table.plain_steps = x + 1;
  }
}

void pack_rows(AxisTable& table) {
  place_quads(table);
  clear_lines(table);
  for (int y = 0; y < table.spec.count; ++y) {
    pack_block_weights(table, static_cast<std::size_t>(y) * table.blocks, y, weight_row(table, y), 2);
  }
}

MILLRACE_AVX2 inline __m256i broadcast_pair(const std::int16_t pair[2]) {
  std::int32_t value;
  std::memcpy(&value, pair, sizeof value);
  return _mm256_set1_epi32(value);
}

MILLRACE_AVX2 inline __m256i add_products(__m256i sum, __m256i words, const std::int16_t pair[2]) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(words, broadcast_pair(pair)));
}

MILLRACE_AVX2 inline __m256i finish(__m256i high, __m256i low) {
  return _mm256_srai_epi32(_mm256_add_epi32(_mm256_slli_epi32(high, kLowBits), low), kPrecisionBits);
}

MILLRACE_AVX2 inline __m256i two_rows(const std::uint8_t* first, const std::uint8_t* second) {
  const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(first));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), _mm_loadu_si128(reinterpret_cast<const __m128i*>(second)),
                                 1);
}

// Shuffles that take two neighbouring taps of every channel as words, from a block that begins `skip` bytes into the
// load.
template <int kChannels>
MILLRACE_AVX2 inline __m256i tap_words(int tap, int skip) {
  alignas(16) std::int8_t index[16];
  for (int c = 0; c < 4; ++c) {
    for (int word = 0; word < 2; ++word) {
      index[4 * c + 2 * word] = static_cast<std::int8_t>(c < kChannels ? skip + (tap + word) * kChannels + c : -1);
      index[4 * c + 2 * word + 1] = -1;
    }
  }
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(index)));
}

// 32 samples of four rows at once, the rest one by one.
MILLRACE_AVX2 void interleave(const std::uint8_t* const rows[kQuadRows], int samples, std::uint8_t* quad) {
  int x = 0;
  for (; x + 32 <= samples; x += 32) {
    __m256i row[kQuadRows];
    for (int r = 0; r < kQuadRows; ++r) row[r] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[r] + x));
    const __m256i low01 = _mm256_unpacklo_epi8(row[0], row[1]), high01 = _mm256_unpackhi_epi8(row[0], row[1]);
    const __m256i low23 = _mm256_unpacklo_epi8(row[2], row[3]), high23 = _mm256_unpackhi_epi8(row[2], row[3]);
    const __m256i a = _mm256_unpacklo_epi16(low01, low23),
                  b = _mm256_unpackhi_epi16(low01, low23);  // samples 0-3, 16-19; 4-7, 20-23
    const __m256i c = _mm256_unpacklo_epi16(high01, high23),
                  d = _mm256_unpackhi_epi16(high01, high23);  // 8-11, 24-27; 12-15, 28-31
    auto* out = reinterpret_cast<__m256i*>(quad + 4 * static_cast<std::ptrdiff_t>(x));
    _mm256_storeu_si256(out, _mm256_permute2x128_si256(a, b, 0x20));
    _mm256_storeu_si256(out + 1, _mm256_permute2x128_si256(c, d, 0x20));
    _mm256_storeu_si256(out + 2, _mm256_permute2x128_si256(a, b, 0x31));
    _mm256_storeu_si256(out + 3, _mm256_permute2x128_si256(c, d, 0x31));
  }
  interleave_plain(rows, x, samples, quad);
}

// Four rows' pixels, rows 0 and 1 in `a`, 2 and 3 in `b`, one dword a channel, to one dword a channel of four rows'
// bytes.
MILLRACE_AVX2 inline __m128i interleave_pixel(__m256i a, __m256i b) {
  const __m256i words = _mm256_packs_epi32(a, b);  // lane 0: rows 0 and 2; lane 1: rows 1 and 3
  const __m128i bytes =
      _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));  // rows 0, 2, 1, 3
  return _mm_shuffle_epi8(bytes, _mm_setr_epi8(0, 8, 4, 12, 1, 9, 5, 13, 2, 10, 6, 14, 3, 11, 7, 15));
}

// Pixels first .. last - 1. The store of an RGB pixel is 16 bytes long; the next pixel overwrites the last four.
template <int kChannels, int kSkip>
MILLRACE_AVX2 void filter_pixels(const AxisTable& table, int first, int last, const std::uint8_t* const rows[kQuadRows],
                                 std::uint8_t* quad) {
  const __m256i words01 = tap_words<kChannels>(0, kSkip);
  const __m256i words23 = tap_words<kChannels>(2, kSkip);
  const int blocks = table.blocks;
  for (int x = first; x < last; ++x) {
    const auto* block =
        reinterpret_cast<const PackedBlock*>(table.packed_bytes()) + static_cast<std::ptrdiff_t>(x) * blocks;
    std::ptrdiff_t at = table.steps[x].source - kSkip;
    __m256i high_a = _mm256_set1_epi32(kHalfOfHigh), high_b = high_a;
    __m256i low_a = _mm256_setzero_si256(), low_b = low_a;
    for (int b = 0; b < blocks; ++b, ++block, at += 4 * kChannels) {
      const __m256i a = two_rows(rows[0] + at, rows[1] + at);
      const __m256i c = two_rows(rows[2] + at, rows[3] + at);
      const __m256i a01 = _mm256_shuffle_epi8(a, words01), a23 = _mm256_shuffle_epi8(a, words23);
      const __m256i c01 = _mm256_shuffle_epi8(c, words01), c23 = _mm256_shuffle_epi8(c, words23);
      high_a = add_products(add_products(high_a, a01, block->high01), a23, block->high23);
      low_a = add_products(add_products(low_a, a01, block->low01), a23, block->low23);
      high_b = add_products(add_products(high_b, c01, block->high01), c23, block->high23);
      low_b = add_products(add_products(low_b, c01, block->low01), c23, block->low23);
    }
    const __m128i pixel = interleave_pixel(finish(high_a, low_a), finish(high_b, low_b));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(quad + static_cast<std::ptrdiff_t>(x) * 4 * kChannels), pixel);
  }
}

MILLRACE_AVX2 inline __m128i four_rows(const std::uint8_t* const rows[kQuadRows], std::ptrdiff_t at) {
  std::int32_t taps[kQuadRows];
  for (int r = 0; r < kQuadRows; ++r) std::memcpy(&taps[r], rows[r] + at, sizeof taps[r]);
  return _mm_setr_epi32(taps[0], taps[1], taps[2], taps[3]);
}

// One channel: the four lanes are the four rows.
MILLRACE_AVX2 void filter_grey(const AxisTable& table, const std::uint8_t* const rows[kQuadRows], std::uint8_t* quad) {
  for (int x = 0; x < table.spec.count; ++x) {
    const auto* block =
        reinterpret_cast<const PackedBlock*>(table.packed_bytes()) + static_cast<std::ptrdiff_t>(x) * table.blocks;
    std::ptrdiff_t at = table.steps[x].source;
    __m256i sum = _mm256_setr_epi32(kHalfOfHigh, kHalfOfHigh, kHalfOfHigh, kHalfOfHigh, 0, 0, 0,
                                    0);  // high sums below, low sums above
    for (int b = 0; b < table.blocks; ++b, ++block, at += 4) {
      const __m256i words =
          _mm256_cvtepu8_epi16(four_rows(rows, at));  // rows 0 and 1 below, 2 and 3 above, four taps each
      const __m256i ordered = _mm256_permutevar8x32_epi32(words, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
      const __m256i taps01 = _mm256_permute4x64_epi64(ordered, 0x44);
      const __m256i taps23 = _mm256_permute4x64_epi64(ordered, 0xEE);
      const __m256i weight01 = _mm256_inserti128_si256(broadcast_pair(block->high01),
                                                       _mm256_castsi256_si128(broadcast_pair(block->low01)), 1);
      const __m256i weight23 = _mm256_inserti128_si256(broadcast_pair(block->high23),
                                                       _mm256_castsi256_si128(broadcast_pair(block->low23)), 1);
      sum = _mm256_add_epi32(
          sum, _mm256_add_epi32(_mm256_madd_epi16(taps01, weight01), _mm256_madd_epi16(taps23, weight23)));
    }
    const __m128i high = _mm_slli_epi32(_mm256_castsi256_si128(sum), kLowBits);
    const __m128i value = _mm_srai_epi32(_mm_add_epi32(high, _mm256_extracti128_si256(sum, 1)), kPrecisionBits);
    const __m128i words = _mm_packs_epi32(value, value);
    const std::int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
    std::memcpy(quad + 4 * static_cast<std::ptrdiff_t>(x), &bytes, sizeof bytes);
  }
}

void horizontal(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows], std::uint8_t* quad) {
  const int count = columns.spec.count;
  if (columns.packed_for == Target::kScalar) return interleaved_horizontal(columns, rows, quad);
  if (columns.spec.channels == 1) return filter_grey(columns, rows, quad);
  if (columns.spec.channels == 4) return filter_pixels<4, 0>(columns, 0, count, rows, quad);
  filter_pixels<3, 0>(columns, 0, columns.plain_steps, rows, quad);
  filter_pixels<3, kStepBack>(columns, columns.plain_steps, count, rows, quad);
}

MILLRACE_AVX2 void vertical(const AxisTable& rows, int y, const std::uint8_t* const* quads, int samples,
                            std::uint8_t* out) {
  const auto* blocks =
      reinterpret_cast<const PackedBlock*>(rows.packed_bytes()) + static_cast<std::ptrdiff_t>(y) * rows.blocks;
  const __m256i even_bytes = _mm256_set1_epi16(0x00FF);
  for (int x = 0; x < samples; x += 32) {
    __m256i high[4], low[4];
    for (int i = 0; i < 4; ++i) {
      high[i] = _mm256_set1_epi32(kHalfOfHigh);
      low[i] = _mm256_setzero_si256();
    }
    for (int q = 0; q < rows.blocks; ++q) {
      const std::uint8_t* in = quads[q] + 4 * static_cast<std::ptrdiff_t>(x);
      for (int i = 0; i < 4; ++i) {
        const __m256i four = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + 32 * i));
        const __m256i rows02 = _mm256_and_si256(four, even_bytes);
        const __m256i rows13 = _mm256_srli_epi16(four, 8);
        high[i] = add_products(add_products(high[i], rows02, blocks[q].high01), rows13, blocks[q].high23);
        low[i] = add_products(add_products(low[i], rows02, blocks[q].low01), rows13, blocks[q].low23);
      }
    }
    const __m256i first = _mm256_packs_epi32(finish(high[0], low[0]), finish(high[1], low[1]));
    const __m256i second = _mm256_packs_epi32(finish(high[2], low[2]), finish(high[3], low[3]));
    const __m256i bytes =
        _mm256_permutevar8x32_epi32(_mm256_packus_epi16(first, second), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + x), bytes);
  }
}

}  // namespace

const RowKernels& avx2_row_kernels() {
  static constexpr RowKernels kKernels{pack_columns, pack_rows, horizontal, interleave, vertical};
  return kKernels;
}

}  // namespace millrace::kernels

#endif  // __x86_64__
