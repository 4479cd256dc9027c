// Rows of 32 samples of 8 bits in one vector, for the decoders with AVX2 and more: each is compiled with
// MILLRACE_L3_TARGET, the attribute of who includes this. Internal to kernels/l3.
#pragma once

#include <immintrin.h>

#include "kernels/l3/tile.h"

namespace millrace::kernels::l3 {
namespace {

// What kSmooth adds to the row above, of which `left` and `right` are the neighbours: two averages that round up.
MILLRACE_L3_TARGET inline __m256i smooth_of(__m256i left, __m256i above, __m256i right) {
  const __m256i half = _mm256_set1_epi8(static_cast<char>(128));
  const __m256i a = _mm256_xor_si256(_mm256_sub_epi8(left, above), half);
  const __m256i b = _mm256_xor_si256(_mm256_sub_epi8(right, above), half);
  return _mm256_xor_si256(_mm256_avg_epu8(_mm256_avg_epu8(a, b), half), half);
}

// A row pair from the row above it. `added`: the residuals, or for left and gradient their sums.
template <class Codes>
MILLRACE_L3_TARGET inline void predict_pair(Mode mode, __m256i above, const __m256i added[2], __m256i rows[2]) {
  if (mode == Mode::kSmooth) {
    rows[0] = _mm256_add_epi8(_mm256_add_epi8(above, Codes::smooth(above)), added[0]);
    rows[1] = _mm256_add_epi8(_mm256_add_epi8(rows[0], Codes::smooth(rows[0])), added[1]);
  } else if (mode == Mode::kLeft) {
    rows[0] = _mm256_add_epi8(_mm256_broadcastb_epi8(_mm256_castsi256_si128(above)), added[0]);
    rows[1] = _mm256_add_epi8(_mm256_broadcastb_epi8(_mm256_castsi256_si128(rows[0])), added[1]);
  } else {
    rows[0] = _mm256_add_epi8(above, added[0]);
    rows[1] = _mm256_add_epi8(rows[0], added[1]);
  }
}

// x >> 1 of signed bytes.
MILLRACE_L3_TARGET inline __m256i halved(__m256i x) {
  const __m256i sign = _mm256_set1_epi8(static_cast<char>(128));
  const __m256i shifted = _mm256_and_si256(_mm256_srli_epi16(x, 1), _mm256_set1_epi8(127));
  return _mm256_or_si256(shifted, _mm256_and_si256(x, sign));
}

// One row of the three planes that a transform has changed.
MILLRACE_L3_TARGET inline void undo_row(Transform transform, __m256i& p, __m256i& q, __m256i& t) {
  switch (transform) {
    case Transform::kGreen:
      p = _mm256_add_epi8(p, q);
      t = _mm256_add_epi8(t, q);
      return;
    case Transform::kNone:
      return;
    case Transform::kGreenRed:
      t = _mm256_add_epi8(_mm256_add_epi8(t, q), halved(p));
      p = _mm256_add_epi8(p, q);
      return;
    case Transform::kYcocg: {
      const __m256i m = _mm256_sub_epi8(q, halved(t)), blue = _mm256_sub_epi8(m, halved(p));
      q = _mm256_add_epi8(m, t);
      p = _mm256_add_epi8(blue, p);
      t = blue;
      return;
    }
  }
}

// A coded tile of 8 bits. `codes.read_pair(mode, rows)` unpacks the next four codes to the residuals of two rows, or for left
// and gradient to their sums up to each column, modulo 256. `Codes::smooth(above)` is smooth_of() its neighbours.
template <int kChannels, class Codes>
MILLRACE_L3_TARGET inline void decode_channels(const TileParts& parts, Codes codes, std::uint8_t* planes) {
  __m256i above[kChannels], rows[kChannels][2];
  for (int c = 0; c < kChannels; ++c) above[c] = _mm256_set1_epi8(static_cast<char>(parts.origins[c]));
  for (int pair = 0; pair < kRowPairs; ++pair) {
#pragma GCC unroll 4
    for (int c = 0; c < kChannels; ++c) {
      const Mode mode = mode_of(parts.modes[c], pair);
      if (mode == Mode::kZero) {
        rows[c][0] = rows[c][1] = above[c];
        continue;
      }
      __m256i added[2];
      codes.read_pair(mode, added);
      predict_pair<Codes>(mode, above[c], added, rows[c]);
      above[c] = rows[c][1];
    }
#pragma GCC unroll 2
    for (int y = 0; y < 2; ++y) {
      if constexpr (kChannels >= 3) undo_row(parts.transform, rows[0][y], rows[1][y], rows[2][y]);
#pragma GCC unroll 4
      for (int c = 0; c < kChannels; ++c)
        _mm256_store_si256(reinterpret_cast<__m256i*>(planes + c * kTilePixels + (2 * pair + y) * kTileSide),
                           rows[c][y]);
    }
  }
}

template <class Codes>
MILLRACE_L3_TARGET inline void decode_coded(int channels, const TileParts& parts, std::uint8_t* planes) {
  switch (channels) {
    case 1:
      return decode_channels<1>(parts, Codes(parts), planes);
    case 2:
      return decode_channels<2>(parts, Codes(parts), planes);
    case 3:
      return decode_channels<3>(parts, Codes(parts), planes);
    default:
      return decode_channels<4>(parts, Codes(parts), planes);
  }
}

}  // namespace
}  // namespace millrace::kernels::l3
