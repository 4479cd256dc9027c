// Sixteen outputs at a time from 64 bytes of the row. Their taps come in blocks: of four bytes, whose weights of 24
// bits are split into three signed bytes (planes 2, 1, 0, the highest first), one vpdpbusd each; and one or two taps
// that are left over as two words, whose weights are split into a word for plane 1 and a byte for plane 0, one vpdpwssd
// each. A shift by 8 between the planes puts the sum together. Exact: every step is modulo 2^32, as the definition's
// sum is.
#include "kernels/cpu/rows/row_columns_avx512.h"

#if defined(__x86_64__)

#include <algorithm>
#include <cstring>
#include <vector>

namespace millrace::kernels {
namespace {

constexpr int kPlanes = 3;
constexpr int kLanes = 16;
constexpr int kSteep = 8;  // source samples an output sample
constexpr int kMostBlocks = 3;
constexpr int kHalfOfPlane2 = 1 << (kPrecisionBits - 1 - 16), kHalfOfPlane1 = 1 << (kPrecisionBits - 1 - 8);
constexpr int kHalfOfSum = 1 << (kPrecisionBits - 1);

// `weight` in signed bytes, the lowest first: weight = b2 * 65536 + b1 * 256 + b0. Adding 128 to every byte makes them
// unsigned digits, carries and all; flipping their top bits takes the 128 away again.
std::uint32_t signed_bytes(std::int32_t weight) {
  return (static_cast<std::uint32_t>(weight) + 0x808080U) ^ 0x808080U;
}

// Lines of one group of columns: the shuffle indices of the blocks, plane by plane the weights of every block, the
// shuffle indices of the pair, its weights for planes 1 and 0.
std::size_t lines_per_group(const AxisTable& table) {
  const std::size_t pair = static_cast<std::size_t>(table.pairs) * 3;
  return pair + (table.blocks > 0 ? 1 + static_cast<std::size_t>(kPlanes) * table.blocks : 0);
}
// Five or six taps: the block and the pair come from the same 64 bytes.
bool has_one_window(const AxisTable& table) {
  return table.blocks == 1 && table.pairs == 1;
}

// Four signed bytes, the lowest first.
std::uint32_t bytes_of(std::uint32_t first, std::uint32_t second, std::uint32_t third, std::uint32_t fourth) {
  return (first & 255) | (second & 255) << 8 | (third & 255) << 16 | fourth << 24;
}

// The weights of all pixels, of each a dword for each line of weights.
std::vector<std::uint32_t> weight_dwords(const AxisTable& table) {
  const int taps = table.weights.taps, blocks = table.blocks, pairs = table.pairs;
  const std::size_t count = table.weights.start.size(), dwords = static_cast<std::size_t>(kPlanes * blocks + 2 * pairs);
  std::vector<std::uint32_t> all(count * dwords);
  std::vector<std::int32_t> padded(static_cast<std::size_t>(4 * blocks + 2 * pairs));
  const std::int32_t* weight = table.weights.weight.data();
  std::uint32_t* out = all.data();
  for (std::size_t x = 0; x < count; ++x, weight += taps, out += dwords) {
    for (int t = 0; t < taps; ++t) padded[static_cast<std::size_t>(t)] = weight[t];
    const std::int32_t* in = padded.data();
    for (int b = 0; b < blocks; ++b, in += 4) {
      const std::uint32_t w0 = signed_bytes(in[0]), w1 = signed_bytes(in[1]), w2 = signed_bytes(in[2]),
                          w3 = signed_bytes(in[3]);
      for (int plane = 0; plane < kPlanes; ++plane) {
        const int shift = 8 * (kPlanes - 1 - plane);
        out[plane * blocks + b] = bytes_of(w0 >> shift, w1 >> shift, w2 >> shift, w3 >> shift);
      }
    }
    if (pairs == 0) continue;
    const std::int32_t high0 = (in[0] + 128) >> 8, high1 = (in[1] + 128) >> 8;
    out[kPlanes * blocks] = joined_words(high0, high1);
    out[kPlanes * blocks + 1] = joined_words(in[0] - high0 * 256, in[1] - high1 * 256);
  }
  return all;
}

// A dword for each lane of a line of shuffle indices. `pattern`: those of a sample at byte 0.
void put_indices(const std::int32_t* firsts, int lanes, int base, std::uint32_t pattern, std::uint32_t step,
                 Line& line) {
  for (int lane = 0; lane < lanes; ++lane) {
    const std::uint32_t indices = pattern + static_cast<std::uint32_t>(firsts[lane] - base) * step;
    std::memcpy(line.bytes + 4 * lane, &indices, sizeof indices);
  }
}

// Many taps are all in blocks.
void choose_blocks(AxisTable& table) {
  const int taps = table.weights.taps, left = taps % 4;
  table.pairs = (left == 1 || left == 2) && taps / 4 <= kMostBlocks ? 1 : 0;
  table.blocks = table.pairs == 1 ? taps / 4 : (taps + 3) / 4;
}

// Cuts the output samples into groups of up to 16 whose windows, of four taps or of all, fit in 64 bytes of the row.
void cut_groups(AxisTable& table, const std::vector<std::int32_t>& firsts) {
  const int channels = table.spec.channels, samples = static_cast<int>(firsts.size());
  const int last_tap = has_one_window(table) ? 5 * channels : 3 * channels;
  table.steps.clear();
  for (int sample = 0; sample < samples;) {
    const int base = table.weights.start[static_cast<std::size_t>(sample / channels)] * channels;
    table.steps.push_back({base, sample});
    const int end = std::min(sample + kLanes, samples);
    while (sample < end && firsts[static_cast<std::size_t>(sample)] + last_tap - base < 64) ++sample;
  }
  const int row = table.spec.in * channels;
  const int last_block = has_one_window(table) ? 0 : (table.blocks + table.pairs - 1) * 4 * channels;
  table.plain_steps =
      static_cast<int>(std::count_if(table.steps.begin(), table.steps.end(), [&](const AxisTable::Step& step) {
        return step.source + last_block + 64 <= row;
      }));
}

void pack_groups(AxisTable& table) {
  const int channels = table.spec.channels;
  choose_blocks(table);
  table.packed_for = Target::kAvx512;
  const std::vector<std::int32_t> firsts = first_bytes(table);
  cut_groups(table, firsts);
  const std::vector<std::uint32_t> dwords = weight_dwords(table);
  const int per_pixel = kPlanes * table.blocks + 2 * table.pairs;
  std::vector<std::int32_t> pixels(firsts.size());  // where the dwords of a sample's pixel begin
  for (int x = 0; x < table.spec.count; ++x)
    std::fill_n(&pixels[static_cast<std::size_t>(x) * channels], channels, x * per_pixel);
  const int first_of_pair = has_one_window(table) ? 4 * table.blocks * channels : 0;
  table.lines.assign(table.steps.size() * lines_per_group(table), Line{});
  Line* line = table.lines.data();
  for (std::size_t g = 0; g < table.steps.size(); ++g) {
    const int base = table.steps[g].source, sample = table.steps[g].output;
    const int end = g + 1 < table.steps.size() ? table.steps[g + 1].output : static_cast<int>(firsts.size());
    const std::int32_t *const first = &firsts[static_cast<std::size_t>(sample)],
                              *const pixel = &pixels[static_cast<std::size_t>(sample)];
    const std::uint32_t* weights = dwords.data();
    const auto put_weights = [&](int lines) {
      for (; lines > 0; --lines, ++weights, ++line) {
        for (int lane = 0; lane < end - sample; ++lane)
          std::memcpy(line->bytes + 4 * lane, weights + pixel[lane], sizeof *weights);
      }
    };
    if (table.blocks > 0) {
      put_indices(first, end - sample, base, bytes_of(0, channels, 2 * channels, 3 * channels), 0x01010101, *line++);
      put_weights(kPlanes * table.blocks);
    }
    if (table.pairs > 0) {
      put_indices(first, end - sample, base, joined_words(first_of_pair, first_of_pair + channels), 0x00010001,
                  *line++);
      put_weights(2);
    }
  }
}

// 64 bytes of the row from `offset`; only those before `end` are touched.
template <bool kPlain>
MILLRACE_AVX512_INLINE __m512i load_window(const std::uint8_t* row, int offset, int end) {
  if constexpr (kPlain) {
    return _mm512_loadu_si512(row + offset);
  } else {
    const int left = std::clamp(end - offset, 0, 64);
    const __mmask64 mask = left == 64 ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
    return _mm512_maskz_loadu_epi8(mask, row + std::min(offset, end));
  }
}

// Three sums, one a plane, to one.
MILLRACE_AVX512_INLINE __m512i join_planes(__m512i high, __m512i middle, __m512i low) {
  const __m512i upper = _mm512_add_epi32(_mm512_slli_epi32(high, 8), middle);
  return _mm512_add_epi32(_mm512_slli_epi32(upper, 8), low);
}

struct GroupInput {
  const Line* lines;
  int offset;
  int end;
  int block_bytes;
};

// The sums of one group in one row. kBlocks is known, so that the shuffled samples stay in registers.
template <int kBlocks, bool kPair, bool kPlain>
MILLRACE_AVX512_INLINE __m512i filter_group(const GroupInput& in, const std::uint8_t* row) {
  const Line* const pair = in.lines + (kBlocks > 0 ? 1 + kPlanes * kBlocks : 0);
  __m512i samples[kBlocks + 1], words = _mm512_setzero_si512();
  for (int b = 0; b < kBlocks; ++b) {
    samples[b] = _mm512_permutexvar_epi8(_mm512_load_si512(in.lines),
                                         load_window<kPlain>(row, in.offset + b * in.block_bytes, in.end));
  }
  if constexpr (kPair) {
    const int skipped = kBlocks == 1 ? 0 : kBlocks * in.block_bytes;  // has_one_window()
    words = _mm512_maskz_permutexvar_epi8(0x5555555555555555, _mm512_load_si512(pair),
                                          load_window<kPlain>(row, in.offset + skipped, in.end));
  }
  __m512i sum = _mm512_set1_epi32(kBlocks > 0 ? kHalfOfPlane2 : kHalfOfPlane1);
  for (int plane = kBlocks > 0 ? 0 : 1; plane < kPlanes; ++plane) {
    if (plane > 0 && (kBlocks > 0 || plane > 1)) sum = _mm512_slli_epi32(sum, 8);
    for (int b = 0; b < kBlocks; ++b)
      sum = _mm512_dpbusd_epi32(sum, samples[b], _mm512_load_si512(in.lines + 1 + plane * kBlocks + b));
    if (kPair && plane > 0) sum = _mm512_dpwssd_epi32(sum, words, _mm512_load_si512(pair + plane));
  }
  return sum;
}

// The same in four rows for any number of blocks, with one sum a plane and row.
template <bool kPlain>
MILLRACE_AVX512_INLINE void filter_long_group(const GroupInput& in, int blocks, const std::uint8_t* const* rows,
                                              __m512i sums[kQuadRows]) {
  const __m512i indices = _mm512_load_si512(in.lines);
  const Line* weights = in.lines + 1;
  __m512i high[kQuadRows], middle[kQuadRows], low[kQuadRows];
  for (int r = 0; r < kQuadRows; ++r) {
    high[r] = middle[r] = _mm512_setzero_si512();
    low[r] = _mm512_set1_epi32(kHalfOfSum);
  }
  for (int b = 0; b < blocks; ++b) {
    const __m512i weight2 = _mm512_load_si512(weights + b);
    const __m512i weight1 = _mm512_load_si512(weights + blocks + b);
    const __m512i weight0 = _mm512_load_si512(weights + 2 * blocks + b);
    for (int r = 0; r < kQuadRows; ++r) {
      const __m512i samples =
          _mm512_permutexvar_epi8(indices, load_window<kPlain>(rows[r], in.offset + b * in.block_bytes, in.end));
      high[r] = _mm512_dpbusd_epi32(high[r], samples, weight2);
      middle[r] = _mm512_dpbusd_epi32(middle[r], samples, weight1);
      low[r] = _mm512_dpbusd_epi32(low[r], samples, weight0);
    }
  }
  for (int r = 0; r < kQuadRows; ++r) sums[r] = join_planes(high[r], middle[r], low[r]);
}

// --- where four rows' sums of a group go; it stores all its sixteen lanes: where it has fewer, the next group
// overwrites the rest ---

// The two words of a lane: the values of the same column of two rows.
template <bool kClamps>
MILLRACE_AVX512_INLINE __m512i words_of(__m512i first, __m512i second) {
  if constexpr (kClamps) {
    const __m512i both = _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_srai_epi32(first, kPrecisionBits),
                                                 _mm512_srai_epi32(second, kPrecisionBits - 16));
    return _mm512_min_epi16(_mm512_max_epi16(both, _mm512_setzero_si512()), _mm512_set1_epi16(255));
  } else {
    return _mm512_mask_multishift_epi64_epi8(_mm512_srli_epi32(first, kPrecisionBits), 0x4444444444444444, value_bits(),
                                             second);
  }
}

struct QuadOutput {
  std::uint8_t* pairs[2];

  template <bool kClamps>
  MILLRACE_AVX512_INLINE void take(int sample, const __m512i sums[kQuadRows]) const {
    const std::ptrdiff_t at = 4 * static_cast<std::ptrdiff_t>(sample);
    _mm512_storeu_si512(pairs[0] + at, words_of<kClamps>(sums[0], sums[1]));
    _mm512_storeu_si512(pairs[1] + at, words_of<kClamps>(sums[2], sums[3]));
  }
};

struct RowsOutput {
  std::uint8_t* const* rows;

  template <bool kClamps>
  MILLRACE_AVX512_INLINE void take(int sample, const __m512i sums[kQuadRows]) const {
    const __m512i values = kClamps ? clamped(sums) : _mm512_permutexvar_epi8(transposed_bytes(), values_by_lane(sums));
    store(rows[0] + sample, _mm512_castsi512_si128(values));
    store(rows[1] + sample, _mm512_extracti32x4_epi32(values, 1));
    store(rows[2] + sample, _mm512_extracti32x4_epi32(values, 2));
    store(rows[3] + sample, _mm512_extracti32x4_epi32(values, 3));
  }

 private:
  MILLRACE_AVX512_INLINE static __m512i clamped(const __m512i sums[kQuadRows]) {
    __m512i values[kQuadRows];
    for (int r = 0; r < kQuadRows; ++r) values[r] = _mm512_srai_epi32(sums[r], kPrecisionBits);
    const __m512i bytes =
        _mm512_packus_epi16(_mm512_packs_epi32(values[0], values[1]), _mm512_packs_epi32(values[2], values[3]));
    return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), bytes);
  }
  MILLRACE_AVX512_INLINE static void store(std::uint8_t* to, __m128i bytes) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
  }
};

// --- the pass ---

// Groups first .. last - 1 of four rows. kBlocks -1: any number.
template <int kBlocks, bool kPair, bool kPlain, bool kClamps, class Output>
MILLRACE_AVX512 void filter_groups(const AxisTable& table, int first, int last, const std::uint8_t* const* rows,
                                   const Output& out) {
  const std::size_t lines = lines_per_group(table);
  const int channels = table.spec.channels;
  for (int g = first; g < last; ++g) {
    const AxisTable::Step step = table.steps[g];
    const GroupInput in{table.lines.data() + g * lines, step.source, table.spec.in * channels, 4 * channels};
    __m512i sums[kQuadRows];
    if constexpr (kBlocks >= 0) {
      for (int r = 0; r < kQuadRows; ++r) sums[r] = filter_group<kBlocks, kPair, kPlain>(in, rows[r]);
    } else {
      filter_long_group<kPlain>(in, table.blocks, rows, sums);
    }
    out.template take<kClamps>(step.output, sums);
  }
}

template <int kBlocks, bool kPair, class Output>
void filter_rows(const AxisTable& table, const std::uint8_t* const* rows, const Output& out) {
  const int plain = table.plain_steps, all = static_cast<int>(table.steps.size());
  if (table.clamps) {
    filter_groups<kBlocks, kPair, true, true>(table, 0, plain, rows, out);
    filter_groups<kBlocks, kPair, false, true>(table, plain, all, rows, out);
  } else {
    filter_groups<kBlocks, kPair, true, false>(table, 0, plain, rows, out);
    filter_groups<kBlocks, kPair, false, false>(table, plain, all, rows, out);
  }
}

template <class Output>
void filter(const AxisTable& table, const std::uint8_t* const* rows, const Output& out) {
  switch (table.blocks > kMostBlocks ? -1 : 2 * table.blocks + table.pairs) {
    case 1:
      return filter_rows<0, true>(table, rows, out);
    case 2:
      return filter_rows<1, false>(table, rows, out);
    case 3:
      return filter_rows<1, true>(table, rows, out);
    case 4:
      return filter_rows<2, false>(table, rows, out);
    case 5:
      return filter_rows<2, true>(table, rows, out);
    case 6:
      return filter_rows<3, false>(table, rows, out);
    case 7:
      return filter_rows<3, true>(table, rows, out);
    default:
      return filter_rows<-1, false>(table, rows, out);
  }
}

}  // namespace

// Steep shrinking leaves few outputs in a window of 64 bytes; below half a vector AVX2's way, pixel by pixel, is
// faster.
void pack_columns_avx512(AxisTable& table) {
  const bool steep = table.spec.channels > 1 && table.spec.in / table.spec.out >= kSteep;
  if (steep) avx2_row_kernels().pack_columns(table);
  if (!steep || table.packed_for == Target::kScalar) pack_groups(table);
}

void horizontal_avx512(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows], std::uint8_t* quad) {
  if (columns.packed_for == Target::kAvx2) return avx2_row_kernels().horizontal(columns, rows, quad);
  const int samples = columns.spec.count * columns.spec.channels;
  filter(columns, rows, QuadOutput{{quad, quad + pair_bytes(samples)}});
}

void horizontal_rows_avx512(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows],
                            std::uint8_t* const out[kQuadRows]) {
  if (columns.packed_for == Target::kAvx2) return avx2_row_kernels().horizontal_rows(columns, rows, out);
  filter(columns, rows, RowsOutput{out});
}

}  // namespace millrace::kernels

#endif  // __x86_64__
