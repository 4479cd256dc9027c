// Resampling with AVX-512 VBMI and VNNI. A weight of 24 bits is split into three signed bytes (planes 2, 1, 0, the
// highest first), so that one vpdpbusd sums four taps of sixteen outputs for one plane; a shift by 8 between planes
// puts the sum together again. Exact: every step is modulo 2^32, as the definition's sum is.
#include "kernels/cpu/row_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#define MILLRACE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni")))

namespace millrace::kernels {
namespace {

constexpr int kPlanes = 3;
constexpr int kLanes = 16;
constexpr int kSteep = 8;  // source samples an output sample
constexpr int kHalfOfPlane2 = 1 << (kPrecisionBits - 1 - 16);
constexpr int kHalfOfSum = 1 << (kPrecisionBits - 1);

// `weight` in signed bytes, the lowest first: weight = b2 * 65536 + b1 * 256 + b0. Adding 128 to every byte makes them
// unsigned digits, carries and all; flipping their top bits takes the 128 away again.
std::uint32_t signed_bytes(std::int32_t weight) {
  return (static_cast<std::uint32_t>(weight) + 0x808080U) ^ 0x808080U;
}

// Lines of one group of columns: the shuffle indices, then plane by plane the weights of every block.
std::size_t lines_per_group(int blocks) {
  return 1 + static_cast<std::size_t>(kPlanes) * blocks;
}

// Writes the lane of output sample `sample` into its group, whose window begins at byte `base` of the row.
void pack_lane(AxisTable& table, Line* group, int lane, int sample, int base) {
  const int channels = table.spec.channels;
  const int taps = table.weights.taps;
  const int pixel = sample / channels;
  const int offset = table.weights.start[pixel] * channels + sample % channels - base;
  const std::int32_t* weight = &table.weights.weight[static_cast<std::size_t>(pixel) * taps];
  for (int i = 0; i < 4; ++i) group->bytes[4 * lane + i] = static_cast<std::uint8_t>(offset + i * channels);
  const std::size_t plane_bytes = table.blocks * sizeof(Line);
  for (int t = 0; t < taps; ++t) {
    const std::uint32_t bytes = signed_bytes(weight[t]);
    std::uint8_t* at = group[1 + t / 4].bytes + 4 * lane + t % 4;
    at[0] = static_cast<std::uint8_t>(bytes >> 16);
    at[plane_bytes] = static_cast<std::uint8_t>(bytes >> 8);
    at[2 * plane_bytes] = static_cast<std::uint8_t>(bytes);
  }
}

// Cuts the output samples into groups of up to 16 whose four-tap windows fit in 64 bytes of the row.
void pack_groups(AxisTable& table) {
  const int channels = table.spec.channels;
  const int samples = table.spec.count * channels;
  const auto offset_of = [&](int sample) {
    return table.weights.start[sample / channels] * channels + sample % channels;
  };
  table.blocks = (table.weights.taps + 3) / 4;
  table.packed_for = Target::kAvx512;
  table.steps.clear();
  table.lines.clear();
  for (int sample = 0; sample < samples;) {
    const int base = table.weights.start[sample / channels] * channels;
    table.steps.push_back({base, sample});
    table.lines.resize(table.steps.size() * lines_per_group(table.blocks));
    Line* group = &table.lines[(table.steps.size() - 1) * lines_per_group(table.blocks)];
    int lane = 0;
    for (; lane < kLanes && sample < samples && offset_of(sample) + 3 * channels - base < 64; ++lane, ++sample) {
      pack_lane(table, group, lane, sample, base);
    }
  }
  const int row = table.spec.in * channels;
  const int last_block = (table.blocks - 1) * 4 * channels;
  table.plain_steps =
      static_cast<int>(std::count_if(table.steps.begin(), table.steps.end(), [&](const AxisTable::Step& step) {
        return step.source + last_block + 64 <= row;
      }));
}

// Steep shrinking leaves few outputs in a window of 64 bytes; below half a vector AVX2's way, pixel by pixel, is
// faster.
void pack_columns(AxisTable& table) {
  const bool steep = table.spec.channels > 1 && table.spec.in / table.spec.out >= kSteep;
  if (steep) avx2_row_kernels().pack_columns(table);
  if (!steep || table.packed_for == Target::kScalar) pack_groups(table);
}

// For every output row: plane by plane, four weights for each of its quads.
void pack_rows(AxisTable& table) {
  place_quads(table);
  const int taps = table.weights.taps;
  const std::size_t bytes = static_cast<std::size_t>(kPlanes) * table.blocks * kQuadRows;
  table.lines.assign((bytes * table.spec.count + sizeof(Line) - 1) / sizeof(Line), Line{});
  std::uint8_t* out = table.packed_bytes();
  for (int y = 0; y < table.spec.count; ++y, out += bytes) {
    for (int t = 0; t < taps; ++t) {
      const std::int32_t weight = table.weights.weight[static_cast<std::size_t>(y) * taps + t];
      const std::uint32_t planes = signed_bytes(weight);
      std::uint8_t* at = out + weight_row(table, y) + t;
      at[0] = static_cast<std::uint8_t>(planes >> 16);
      at[table.blocks * kQuadRows] = static_cast<std::uint8_t>(planes >> 8);
      at[2 * table.blocks * kQuadRows] = static_cast<std::uint8_t>(planes);
    }
  }
}

// 64 bytes of the row from `offset`; only those before `end` are touched.
template <bool kPlain>
MILLRACE_AVX512 inline __m512i load_window(const std::uint8_t* row, int offset, int end) {
  if constexpr (kPlain) {
    return _mm512_loadu_si512(row + offset);
  } else {
    const int left = std::clamp(end - offset, 0, 64);
    const __mmask64 mask = left == 64 ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
    return _mm512_maskz_loadu_epi8(mask, row + std::min(offset, end));
  }
}

// Four vectors of sums of the same sixteen columns to interleaved bytes: lane i holds the four rows of column i.
MILLRACE_AVX512 inline __m512i interleave_sums(__m512i a, __m512i b, __m512i c, __m512i d) {
  const __m512i bytes = _mm512_packus_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
  const __m512i transpose = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  return _mm512_shuffle_epi8(bytes, transpose);
}

// Three sums, one a plane, to the finished pixel value.
MILLRACE_AVX512 inline __m512i join_planes(__m512i high, __m512i middle, __m512i low) {
  const __m512i upper = _mm512_add_epi32(_mm512_slli_epi32(high, 8), middle);
  return _mm512_srai_epi32(_mm512_add_epi32(_mm512_slli_epi32(upper, 8), low), kPrecisionBits);
}

struct GroupInput {
  const Line* lines;
  int offset;
  int end;
  int block_bytes;
};

// The sums of one group in one row, finished down to the pixel value. kBlocks is known, so that the shuffled samples
// stay in registers.
template <int kBlocks, bool kPlain>
MILLRACE_AVX512 inline __m512i filter_group(const GroupInput& in, const std::uint8_t* row) {
  const __m512i indices = _mm512_load_si512(in.lines);
  __m512i samples[kBlocks];
  for (int b = 0; b < kBlocks; ++b) {
    samples[b] = _mm512_permutexvar_epi8(indices, load_window<kPlain>(row, in.offset + b * in.block_bytes, in.end));
  }
  __m512i sum = _mm512_set1_epi32(kHalfOfPlane2);
  for (int plane = 0; plane < kPlanes; ++plane) {
    if (plane > 0) sum = _mm512_slli_epi32(sum, 8);
    for (int b = 0; b < kBlocks; ++b)
      sum = _mm512_dpbusd_epi32(sum, samples[b], _mm512_load_si512(in.lines + 1 + plane * kBlocks + b));
  }
  return _mm512_srai_epi32(sum, kPrecisionBits);
}

// The same in four rows for any number of blocks, with one sum a plane and row.
template <bool kPlain>
MILLRACE_AVX512 inline void filter_long_group(const GroupInput& in, int blocks, const std::uint8_t* const* rows,
                                              __m512i sum[kQuadRows]) {
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
  for (int r = 0; r < kQuadRows; ++r) sum[r] = join_planes(high[r], middle[r], low[r]);
}

// Groups first .. last - 1 of four rows. A group stores all its sixteen lanes; where it has fewer, the next group
// overwrites the rest.
template <int kBlocks, bool kPlain>
MILLRACE_AVX512 void filter_groups(const AxisTable& table, int first, int last, const std::uint8_t* const* rows,
                                   std::uint8_t* quad) {
  const std::size_t lines = lines_per_group(table.blocks);
  const int channels = table.spec.channels;
  for (int g = first; g < last; ++g) {
    const AxisTable::Step step = table.steps[g];
    const GroupInput in{table.lines.data() + g * lines, step.source, table.spec.in * channels, 4 * channels};
    __m512i sum[kQuadRows];
    if constexpr (kBlocks > 0) {
      for (int r = 0; r < kQuadRows; ++r) sum[r] = filter_group<kBlocks, kPlain>(in, rows[r]);
    } else {
      filter_long_group<kPlain>(in, table.blocks, rows, sum);
    }
    _mm512_storeu_si512(quad + 4 * static_cast<std::ptrdiff_t>(step.output),
                        interleave_sums(sum[0], sum[1], sum[2], sum[3]));
  }
}

template <int kBlocks>
MILLRACE_AVX512 void filter_rows(const AxisTable& table, const std::uint8_t* const* rows, std::uint8_t* quad) {
  filter_groups<kBlocks, true>(table, 0, table.plain_steps, rows, quad);
  filter_groups<kBlocks, false>(table, table.plain_steps, static_cast<int>(table.steps.size()), rows, quad);
}

void horizontal(const AxisTable& columns, const std::uint8_t* const rows[kQuadRows], std::uint8_t* quad) {
  if (columns.packed_for == Target::kAvx2) return avx2_row_kernels().horizontal(columns, rows, quad);
  switch (columns.blocks) {
    case 1:
      return filter_rows<1>(columns, rows, quad);
    case 2:
      return filter_rows<2>(columns, rows, quad);
    case 3:
      return filter_rows<3>(columns, rows, quad);
    default:
      return filter_rows<0>(columns, rows, quad);
  }
}

// The dwords that unpacking within 128-bit lanes, or packing, leaves in this order come out (or go in) as 0, 1, 2, ...
MILLRACE_AVX512 inline __m512i lane_order() {
  return _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
}

MILLRACE_AVX512 void interleave(const std::uint8_t* const rows[kQuadRows], int samples, std::uint8_t* quad) {
  for (int x = 0; x < samples; x += 64) {
    __m512i row[kQuadRows];
    for (int r = 0; r < kQuadRows; ++r)
      row[r] = _mm512_permutexvar_epi32(lane_order(), load_window<false>(rows[r], x, samples));
    const __m512i low01 = _mm512_unpacklo_epi8(row[0], row[1]), high01 = _mm512_unpackhi_epi8(row[0], row[1]);
    const __m512i low23 = _mm512_unpacklo_epi8(row[2], row[3]), high23 = _mm512_unpackhi_epi8(row[2], row[3]);
    std::uint8_t* out = quad + 4 * static_cast<std::ptrdiff_t>(x);
    _mm512_storeu_si512(out, _mm512_unpacklo_epi16(low01, low23));
    _mm512_storeu_si512(out + 64, _mm512_unpackhi_epi16(low01, low23));
    _mm512_storeu_si512(out + 128, _mm512_unpacklo_epi16(high01, high23));
    _mm512_storeu_si512(out + 192, _mm512_unpackhi_epi16(high01, high23));
  }
}

MILLRACE_AVX512 inline __m512i broadcast_dword(const std::uint8_t* from) {
  std::int32_t value;
  std::memcpy(&value, from, sizeof value);
  return _mm512_set1_epi32(value);
}

// Four vectors of sums of 64 columns in a row to 64 bytes.
MILLRACE_AVX512 inline void store_bytes(std::uint8_t* out, const __m512i sum[4]) {
  const __m512i bytes = _mm512_packus_epi16(_mm512_packs_epi32(sum[0], sum[1]), _mm512_packs_epi32(sum[2], sum[3]));
  _mm512_storeu_si512(out, _mm512_permutexvar_epi32(lane_order(), bytes));
}

template <int kQuads>
MILLRACE_AVX512 void filter_columns(const std::uint8_t* weights, const std::uint8_t* const* quads, int samples,
                                    std::uint8_t* out) {
  __m512i weight[kPlanes][kQuads];
  for (int plane = 0; plane < kPlanes; ++plane) {
    for (int q = 0; q < kQuads; ++q) weight[plane][q] = broadcast_dword(weights + 4 * (plane * kQuads + q));
  }
  for (int x = 0; x < samples; x += 64) {
    __m512i sum[4];
    for (int i = 0; i < 4; ++i) {
      sum[i] = _mm512_set1_epi32(kHalfOfPlane2);
      for (int plane = 0; plane < kPlanes; ++plane) {
        if (plane > 0) sum[i] = _mm512_slli_epi32(sum[i], 8);
        for (int q = 0; q < kQuads; ++q) {
          sum[i] = _mm512_dpbusd_epi32(sum[i], _mm512_loadu_si512(quads[q] + 4 * x + 64 * i), weight[plane][q]);
        }
      }
      sum[i] = _mm512_srai_epi32(sum[i], kPrecisionBits);
    }
    store_bytes(out + x, sum);
  }
}

MILLRACE_AVX512 void filter_long_columns(const std::uint8_t* weights, int count, const std::uint8_t* const* quads,
                                         int samples, std::uint8_t* out) {
  for (int x = 0; x < samples; x += 64) {
    __m512i high[4], middle[4], low[4];
    for (int i = 0; i < 4; ++i) {
      high[i] = middle[i] = _mm512_setzero_si512();
      low[i] = _mm512_set1_epi32(kHalfOfSum);
    }
    for (int q = 0; q < count; ++q) {
      const __m512i weight2 = broadcast_dword(weights + 4 * q);
      const __m512i weight1 = broadcast_dword(weights + 4 * (count + q));
      const __m512i weight0 = broadcast_dword(weights + 4 * (2 * count + q));
      for (int i = 0; i < 4; ++i) {
        const __m512i samples4 = _mm512_loadu_si512(quads[q] + 4 * static_cast<std::ptrdiff_t>(x) + 64 * i);
        high[i] = _mm512_dpbusd_epi32(high[i], samples4, weight2);
        middle[i] = _mm512_dpbusd_epi32(middle[i], samples4, weight1);
        low[i] = _mm512_dpbusd_epi32(low[i], samples4, weight0);
      }
    }
    for (int i = 0; i < 4; ++i) low[i] = join_planes(high[i], middle[i], low[i]);
    store_bytes(out + x, low);
  }
}

void vertical(const AxisTable& rows, int y, const std::uint8_t* const* quads, int samples, std::uint8_t* out) {
  const std::uint8_t* weights = rows.packed_bytes() + static_cast<std::size_t>(y) * kPlanes * rows.blocks * kQuadRows;
  switch (rows.blocks) {
    case 1:
      return filter_columns<1>(weights, quads, samples, out);
    case 2:
      return filter_columns<2>(weights, quads, samples, out);
    case 3:
      return filter_columns<3>(weights, quads, samples, out);
    default:
      return filter_long_columns(weights, rows.blocks, quads, samples, out);
  }
}

}  // namespace

const RowKernels& avx512_row_kernels() {
  static constexpr RowKernels kKernels{pack_columns, pack_rows, horizontal, interleave, vertical};
  return kKernels;
}

}  // namespace millrace::kernels

#endif  // __x86_64__
