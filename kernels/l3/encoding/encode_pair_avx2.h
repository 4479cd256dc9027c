// Row pairs of samples of 8 bits with AVX2, a row a vector: what encode_pair.h has for whole pairs, with the same results.
// Included by encode_tile_avx2.cc, within its pragma. Internal to kernels/l3.
#pragma once

#include <immintrin.h>

#include "kernels/l3/encoding/encode_pair.h"

namespace millrace::kernels::l3 {
namespace {

static_assert(kTileSide == 32);

inline __m256i load_row(const std::uint8_t* row) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row));
}

// Each sample's left neighbour; of column 0 the sample `first` has there.
inline __m256i to_the_left(__m256i row, __m256i first) {
  const __m256i before = _mm256_permute2x128_si256(row, row, 0x08);  // 0, and the lower half
  const __m256i left = _mm256_alignr_epi8(row, before, 15);
  const __m256i column_0 = _mm256_setr_epi64x(0xFF, 0, 0, 0);
  return _mm256_blendv_epi8(left, first, column_0);
}

// Each sample's right neighbour; of column 31 itself.
inline __m256i to_the_right(__m256i row) {
  const __m256i behind = _mm256_permute2x128_si256(row, row, 0x81);  // the upper half, and 0
  const __m256i right = _mm256_alignr_epi8(behind, row, 1);
  const __m256i column_31 = _mm256_setr_epi64x(0, 0, 0, static_cast<long long>(0xFF00'0000'0000'0000U));
  return _mm256_blendv_epi8(right, row, column_31);
}

// What mode smooth predicts under a row.
inline __m256i smooth_under(__m256i above) {
  const __m256i half = _mm256_set1_epi8(static_cast<char>(0x80));
  const __m256i a = _mm256_xor_si256(_mm256_sub_epi8(to_the_left(above, above), above), half),
                b = _mm256_xor_si256(_mm256_sub_epi8(to_the_right(above), above), half);
  return _mm256_add_epi8(above, _mm256_xor_si256(_mm256_avg_epu8(_mm256_avg_epu8(a, b), half), half));
}

struct RowsOfPair {
  __m256i upper, lower;
};

inline RowsOfPair residuals_of(Mode mode, const std::uint8_t (*rows)[kTileSide]) {
  const __m256i above = load_row(rows[-1]), upper = load_row(rows[0]), lower = load_row(rows[1]);
  if (mode == Mode::kSmooth)
    return {_mm256_sub_epi8(upper, smooth_under(above)), _mm256_sub_epi8(lower, smooth_under(upper))};
  const RowsOfPair left{_mm256_sub_epi8(upper, to_the_left(upper, above)),
                        _mm256_sub_epi8(lower, to_the_left(lower, upper))};
  if (mode == Mode::kLeft) return left;
  return {_mm256_sub_epi8(left.upper, _mm256_sub_epi8(above, to_the_left(above, above))),
          _mm256_sub_epi8(left.lower, _mm256_sub_epi8(upper, to_the_left(upper, upper)))};
}

// The codes of a row pair, and the bytes of their payload. A group's width is the bit length of twice the folded
// residuals, with their lowest bit set where one is not 0.
inline void choose_codes(const RowsOfPair& residuals, const CodeChooser& chooser, PairChoice& choice) {
  const __m256i zero = _mm256_setzero_si256(), one = _mm256_set1_epi8(1), nibble = _mm256_set1_epi16(15);
  const auto folded = [&](__m256i row) { return _mm256_xor_si256(row, _mm256_cmpgt_epi8(zero, row)); };
  const __m256i any = _mm256_min_epu8(_mm256_or_si256(residuals.upper, residuals.lower), one);
  const __m256i both = _mm256_or_si256(folded(residuals.upper), folded(residuals.lower));
  const __m256i columns = _mm256_or_si256(_mm256_add_epi8(both, both), any);
  const __m256i groups = _mm256_or_si256(columns, _mm256_srli_epi16(columns, 8));  // the lower byte of each 2 counts
  const __m256i low_widths = _mm256_setr_epi8(0, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4,  //
                                              0, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4);
  const __m256i high_widths = _mm256_setr_epi8(0, 5, 6, 6, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8, 8, 8,  //
                                               0, 5, 6, 6, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8, 8, 8);
  const __m256i low = _mm256_and_si256(groups, nibble), high = _mm256_and_si256(_mm256_srli_epi16(groups, 4), nibble);
  const __m256i widths = _mm256_max_epu8(_mm256_shuffle_epi8(low_widths, low), _mm256_shuffle_epi8(high_widths, high));
  // Two groups a number, then the places of four in the chooser's table.
  const __m256i twos = _mm256_madd_epi16(widths, _mm256_set1_epi32(CodeChooser::kWidthsOf8 | 1 << 16));
  const __m256i fours =
      _mm256_add_epi64(_mm256_mul_epu32(twos, _mm256_set1_epi64x(CodeChooser::kWidthsOf8 * CodeChooser::kWidthsOf8)),
                       _mm256_srli_epi64(twos, 32));
  alignas(32) std::uint64_t places[kCodesOfPair];
  _mm256_store_si256(reinterpret_cast<__m256i*>(places), fours);
  choice.bytes = 0;
  for (int i = 0; i < kCodesOfPair; ++i) {
    choice.codes[i] = chooser.code_at(places[i]);
    choice.bytes += chooser.book().bytes[choice.codes[i]];
  }
}

inline PairChoice choose_mode(const RowPair<std::uint8_t>& pair, const CodeChooser& chooser) {
  if (!pair.is_whole()) return choose_mode<std::uint8_t>(pair, chooser);
  const __m256i above = load_row(pair.rows[-1]), upper = load_row(pair.rows[0]), lower = load_row(pair.rows[1]);
  const __m256i differ = _mm256_or_si256(_mm256_xor_si256(above, upper), _mm256_xor_si256(above, lower));
  if (_mm256_testz_si256(differ, differ) != 0) return {};
  PairChoice best{.mode = Mode::kSmooth, .bytes = 0, .codes = {}};
  choose_codes(residuals_of(Mode::kSmooth, pair.rows), chooser, best);
  for (const Mode mode : {Mode::kLeft, Mode::kGradient}) {
    PairChoice choice{.mode = mode, .bytes = 0, .codes = {}};
    choose_codes(residuals_of(mode, pair.rows), chooser, choice);
    if (choice.bytes < best.bytes) best = choice;
  }
  return best;
}

inline void make_residuals(Mode mode, const RowPair<std::uint8_t>& pair, PairResiduals<std::uint8_t>& residuals) {
  if (!pair.is_whole()) return make_residuals<std::uint8_t>(mode, pair, residuals);
  const RowsOfPair rows = residuals_of(mode, pair.rows);
  _mm256_store_si256(reinterpret_cast<__m256i*>(residuals.rows[0]), rows.upper);
  _mm256_store_si256(reinterpret_cast<__m256i*>(residuals.rows[1]), rows.lower);
}

// Writes up to 16 bytes behind the payload. A group's four samples are a number of 32 bits, two groups one of 64.
inline std::uint8_t* write_codes(const PairResiduals<std::uint8_t>& residuals, const Book& book,
                                 const std::uint8_t* codes, std::uint8_t* out) {
  for (int place = 0; place < kCodesOfPair; ++place) {
    const Code& code = book.codes[codes[place]];
    std::uint32_t packed;
    std::memcpy(&packed, code.widths, sizeof packed);
    const __m128i widths = _mm_cvtepu8_epi32(_mm_cvtsi32_si128(static_cast<int>(packed)));
    const __m128i upper = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(residuals.rows[0] + 8 * place)),
                  lower = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(residuals.rows[1] + 8 * place));
    const __m128i groups = _mm_unpacklo_epi16(upper, lower);  // four samples a group, a byte each
    const __m128i one = _mm_set1_epi32(1), mask = _mm_sub_epi32(_mm_sllv_epi32(one, widths), one);
    const auto sample = [&](int bit) { return _mm_and_si128(_mm_srli_epi32(groups, bit), mask); };
    const __m128i twice = _mm_add_epi32(widths, widths);
    const __m128i first = _mm_or_si128(sample(0), _mm_sllv_epi32(sample(8), widths)),
                  second = _mm_or_si128(sample(16), _mm_sllv_epi32(sample(24), widths));
    const __m128i numbers = _mm_or_si128(first, _mm_sllv_epi32(second, twice));  // 4 x width bits each
    const auto bits = [&](int group) { return 4U * code.widths[group]; };
    const auto lower_two = static_cast<std::uint64_t>(_mm_cvtsi128_si64(numbers)),
               upper_two = static_cast<std::uint64_t>(_mm_extract_epi64(numbers, 1));
    const auto together = [](std::uint64_t two, unsigned first_bits) {
      return (two & 0xFFFF'FFFFU) | (two >> 32U) << first_bits;
    };
    const std::uint64_t low = together(lower_two, bits(0)), high = together(upper_two, bits(2));
    const unsigned low_bits = bits(0) + bits(1);
    std::memcpy(out, &low, sizeof low);
    std::uint8_t* const next = out + low_bits / 8;
    std::uint64_t shared = low_bits % 8 == 0 ? 0 : low >> (low_bits / 8 * 8);  // four bits, or none
    shared |= high << (low_bits % 8);
    std::memcpy(next, &shared, sizeof shared);
    if (low_bits % 8 != 0) next[8] = static_cast<std::uint8_t>(high >> 60U);
    out += book.bytes[codes[place]];
  }
  return out;
}

}  // namespace
}  // namespace millrace::kernels::l3
