// From coefficients in zig-zag order to samples with AVX2, two blocks at a time, for the loop that unpacks them: it
// includes this in its namespace's reach and has the functions inlined.
#pragma once

#include <immintrin.h>

#include <type_traits>

#include "kernels/cpu/jpeg/dct/inverse_dct_avx2_lanes.h"

#define MILLRACE_FUSED_TARGET __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt")))
#define MILLRACE_FUSED_INLINE MILLRACE_FUSED_TARGET inline __attribute__((always_inline))

namespace millrace::kernels::jpeg {
namespace {

constexpr int kCornerEnd = 10;  // the first ten coefficients in zig-zag order are in a corner of 4 x 4

// For each row of a block and each part of its coefficients in zig-zag order, 16 bytes: which of them goes where; 0x80
// leaves a zero. In both lanes.
template <int kParts>
struct Order {
  alignas(32) std::uint8_t from[kBlock][kParts][32];
  bool any[kBlock][kParts];
};

// Row by row, or for `fast` column by column. Parts of bytes, which become the upper ones of words, or of words.
template <int kParts>
constexpr Order<kParts> make_order(Precision precision) {
  constexpr std::size_t kInPart = kCoefficients / kParts;
  Order<kParts> order{};
  for (auto& of_row : order.from) {
    for (auto& of_part : of_row) {
      for (std::uint8_t& byte : of_part) byte = 0x80;
    }
  }
  for (std::size_t i = 0; i < kCoefficients; ++i) {
    const std::size_t natural = kNatural[i];
    const std::size_t to = precision == Precision::kExact ? natural : natural % kBlock * kBlock + natural / kBlock;
    const std::size_t row = to / kBlock, part = i / kInPart;
    order.any[row][part] = true;
    for (std::size_t at = 2 * (to % kBlock); at < 32; at += 16) {
      if (kInPart == 8) order.from[row][part][at] = static_cast<std::uint8_t>(2 * (i % kInPart));
      order.from[row][part][at + 1] = static_cast<std::uint8_t>(kInPart == 8 ? 2 * (i % kInPart) + 1 : i % kInPart);
    }
  }
  return order;
}
constexpr int kQuarters = 4, kEighths = 8;
template <Precision kPrecision, int kParts>
constexpr Order<kParts> kOrder = make_order<kParts>(kPrecision);

// The corner's rows 0 and 2, and 1 and 3, word by word in turns; columns 0, 2, 1, 3.
struct CornerOrder {
  alignas(32) std::uint8_t from[2][32];
  std::uint8_t natural[2][8];
};
constexpr CornerOrder kCorner = [] {
  CornerOrder order{};
  for (std::size_t odd = 0; odd < 2; ++odd) {
    for (std::size_t word = 0; word < 8; ++word) {
      const std::size_t row = odd + word % 2 * 2, column = word / 2 % 2 * 2 + word / 4;
      order.natural[odd][word] = static_cast<std::uint8_t>(row * kBlock + column);
      for (std::size_t lane = 0; lane < 32; lane += 16) {
        order.from[odd][lane + 2 * word] = order.from[odd][lane + 2 * word + 1] = 0x80;
        for (std::uint8_t i = 0; i < kCornerEnd; ++i) {
          if (kNatural[i] == order.natural[odd][word]) order.from[odd][lane + 2 * word + 1] = i;
        }
      }
    }
  }
  return order;
}();

// What coefficients are multiplied by, row by row, in both lanes.
struct Factors {
  Vec steps[kBlock], scales[kBlock];
  Vec corner[2];
};
MILLRACE_FUSED_INLINE Vec in_both(const std::int16_t* eight) {
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(eight)));
}
template <Precision kPrecision>
MILLRACE_FUSED_INLINE void find_factors(const Dequantiser& dequantiser, Factors& factors) {
  if constexpr (kPrecision == Precision::kFast) {
    for (int row = 0; row < kBlock; ++row) {
      factors.steps[row] = in_both(dequantiser.fast.steps.data() + row * kBlock);
      factors.scales[row] = in_both(dequantiser.fast.scales.data() + row * kBlock);
    }
    return;
  }
  for (int row = 0; row < kBlock; ++row) factors.steps[row] = in_both(dequantiser.factors.data() + row * kBlock);
  for (int odd = 0; odd < 2; ++odd)
    factors.corner[odd] = _mm256_shuffle_epi32(low16(factors.steps[odd], factors.steps[odd + 2]), 0xD8);
}

MILLRACE_FUSED_INLINE Vec of_both(__m128i first, __m128i second) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1);
}

template <Precision kPrecision, int kParts, int kRow, int kPart>
MILLRACE_FUSED_INLINE Vec add_part(Vec row, Vec part) {
  if constexpr (!kOrder<kPrecision, kParts>.any[kRow][kPart]) return row;
  const Vec from = _mm256_load_si256(reinterpret_cast<const Vec*>(kOrder<kPrecision, kParts>.from[kRow][kPart]));
  return _mm256_or_si256(row, _mm256_shuffle_epi8(part, from));
}

// A row of two blocks, dequantised.
template <Precision kPrecision, int kRow>
MILLRACE_FUSED_INLINE Vec dequantised(Vec row, const Factors& factors) {
  row = _mm256_mullo_epi16(row, factors.steps[kRow]);
  return kPrecision == Precision::kFast ? _mm256_mulhrs_epi16(row, factors.scales[kRow]) : row;
}

// Rows from the first kThere quarters of bytes; `level`: of DC, which the bytes lack.
template <Precision kPrecision, int kThere, int kRow = 0>
MILLRACE_FUSED_INLINE void order_bytes(const Vec quarters[kQuarters], Vec level, const Factors& factors, Vec rows[8]) {
  Vec row = _mm256_setzero_si256();
  row = add_part<kPrecision, kQuarters, kRow, 0>(row, quarters[0]);
  row = add_part<kPrecision, kQuarters, kRow, 1>(row, quarters[1]);
  if constexpr (kThere > 2) {
    row = add_part<kPrecision, kQuarters, kRow, 2>(row, quarters[2]);
    row = add_part<kPrecision, kQuarters, kRow, 3>(row, quarters[3]);
  }
  row = _mm256_srai_epi16(row, 8);
  if constexpr (kRow == 0) row = _mm256_or_si256(row, level);
  rows[kRow] = dequantised<kPrecision, kRow>(row, factors);
  if constexpr (kRow < 7) order_bytes<kPrecision, kThere, kRow + 1>(quarters, level, factors, rows);
}

// The same from words.
template <Precision kPrecision, int kRow = 0>
MILLRACE_FUSED_INLINE void order_words(const Vec eighths[kEighths], Vec level, const Factors& factors, Vec rows[8]) {
  Vec row = _mm256_setzero_si256();
  row = add_part<kPrecision, kEighths, kRow, 0>(row, eighths[0]);
  row = add_part<kPrecision, kEighths, kRow, 1>(row, eighths[1]);
  row = add_part<kPrecision, kEighths, kRow, 2>(row, eighths[2]);
  row = add_part<kPrecision, kEighths, kRow, 3>(row, eighths[3]);
  row = add_part<kPrecision, kEighths, kRow, 4>(row, eighths[4]);
  row = add_part<kPrecision, kEighths, kRow, 5>(row, eighths[5]);
  row = add_part<kPrecision, kEighths, kRow, 6>(row, eighths[6]);
  row = add_part<kPrecision, kEighths, kRow, 7>(row, eighths[7]);
  if constexpr (kRow == 0) row = _mm256_or_si256(row, level);
  rows[kRow] = dequantised<kPrecision, kRow>(row, factors);
  if constexpr (kRow < 7) order_words<kPrecision, kRow + 1>(eighths, level, factors, rows);
}

template <Precision kPrecision>
MILLRACE_FUSED_INLINE void transform_rows_of(Vec rows[8], Vec samples[4]) {
  kPrecision == Precision::kFast ? transform_fast_lanes(rows, samples) : transform_lanes(rows, samples);
}

// A pass of the corner: four columns, or four rows. `half`: added to the eight sums.
MILLRACE_FUSED_INLINE void transform_corner_rows(Vec in02, Vec in13, Vec half, Vec sums[8]) {
  const Vec even[4] = {add_madd(half, in02, pair(8192, 10703)), add_madd(half, in02, pair(8192, 4433)),
                       add_madd(half, in02, pair(8192, -4433)), add_madd(half, in02, pair(8192, -10703))};
  const Vec odd[4] = {madd(in13, pair(11363, 9633)), madd(in13, pair(9633, -2259)), madd(in13, pair(6437, -11362)),
                      madd(in13, pair(2260, -6436))};
  for (int i = 0; i < 4; ++i) {
    sums[i] = add32(even[i], odd[i]);
    sums[7 - i] = sub32(even[i], odd[i]);
  }
}

MILLRACE_FUSED_INLINE Vec shuffled(Vec a, Vec b, std::integral_constant<int, 0x88>) {
  return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88));
}
MILLRACE_FUSED_INLINE Vec shuffled(Vec a, Vec b, std::integral_constant<int, 0xDD>) {
  return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0xDD));
}

// Two blocks with nothing outside the corner: half of the first pass, and of the second one half the products. The
// sums are those of transform_lanes(). Rows 0 and 2 in `in02`, rows 1 and 3 in `in13`, as kCorner has them.
MILLRACE_FUSED_INLINE void transform_corner(Vec in02, Vec in13, Vec out[4]) {
  Vec sums[8], rows[4];
  transform_corner_rows(in02, in13, set32(1 << (kFirstBits - 1)), sums);
  for (int i = 0; i < 4; ++i)
    rows[i] = pack32(shift_right32<kFirstBits>(sums[2 * i]), shift_right32<kFirstBits>(sums[2 * i + 1]));
  const Vec level = set32(128 << kSecondBits | 1 << (kSecondBits - 1));
  const std::integral_constant<int, 0x88> even;
  const std::integral_constant<int, 0xDD> odd;
  for (int half = 0; half < 4; half += 2) {
    transform_corner_rows(shuffled(rows[half], rows[half + 1], even), shuffled(rows[half], rows[half + 1], odd), level,
                          sums);
    to_bytes(sums, out + half);
  }
}

}  // namespace
}  // namespace millrace::kernels::jpeg
