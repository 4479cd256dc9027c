// How the tile encoder codes a row pair of a channel: its residuals in each mode, their codes, and the payload. Plain loops
// over arrays of 32, compiled once for each instruction set, as encode_tile_loop.h, which includes it. Internal to
// kernels/l3.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "kernels/l3/encoding/code_chooser.h"
#include "kernels/l3/tile.h"

namespace millrace::kernels::l3 {
namespace {

template <class Sample>
struct Signed;
template <>
struct Signed<std::uint8_t> {
  using Type = std::int8_t;
};
template <>
struct Signed<std::uint16_t> {
  using Type = std::int16_t;
};

// Residuals of a row pair, 2 x 32.
template <class Sample>
struct PairResiduals {
  alignas(64) Sample rows[2][kTileSide];
};

template <class Sample>
int signed_of(Sample x) {
  return static_cast<typename Signed<Sample>::Type>(x);
}

// Residuals of a row whose samples are all known. The outermost columns have other neighbours than the rest, and come last.
// The rounding average of two averages is README.md's sum with 3 and its shift by 2.
template <class Sample>
void known_residuals(Mode mode, const Sample* above, const Sample* row, Sample* residuals) {
  constexpr auto kHalf = static_cast<Sample>(Sample{1} << (8 * sizeof(Sample) - 1));
  const auto average = [](Sample a, Sample b) { return static_cast<Sample>((a + b + 1) >> 1); };
  const auto smooth = [&](Sample left, Sample top, Sample right) {
    const auto a = static_cast<Sample>((left - top) ^ kHalf), b = static_cast<Sample>((right - top) ^ kHalf);
    return static_cast<Sample>(top + (average(average(a, b), kHalf) ^ kHalf));
  };
  constexpr int kLast = kTileSide - 1;
  switch (mode) {
    case Mode::kZero:
      for (int x = 0; x < kTileSide; ++x) residuals[x] = static_cast<Sample>(row[x] - above[x]);
      return;
    case Mode::kSmooth:
      for (int x = 1; x < kLast; ++x)
        residuals[x] = static_cast<Sample>(row[x] - smooth(above[x - 1], above[x], above[x + 1]));
      residuals[0] = static_cast<Sample>(row[0] - smooth(above[0], above[0], above[1]));
      residuals[kLast] = static_cast<Sample>(row[kLast] - smooth(above[kLast - 1], above[kLast], above[kLast]));
      return;
    case Mode::kLeft:
      for (int x = 1; x < kTileSide; ++x) residuals[x] = static_cast<Sample>(row[x] - row[x - 1]);
      break;
    case Mode::kGradient:
      for (int x = 1; x < kTileSide; ++x)
        residuals[x] = static_cast<Sample>(row[x] - row[x - 1] - above[x] + above[x - 1]);
      break;
  }
  residuals[0] = static_cast<Sample>(row[0] - above[0]);
}

// The samples of a row from column `width` on become what is predicted there, so that their residuals are 0.
template <class Sample>
void complete_row(Mode mode, const Sample* above, int width, Sample* row) {
  for (int x = width; x < kTileSide; ++x) {
    const Sample top = above[x], top_left = above[x == 0 ? 0 : x - 1],
                 top_right = above[std::min(x + 1, kTileSide - 1)];
    const Sample left = x == 0 ? top : row[x - 1];
    switch (mode) {
      case Mode::kZero:
        row[x] = top;
        break;
      case Mode::kSmooth:
        row[x] = static_cast<Sample>(top + ((signed_of(static_cast<Sample>(top_left - top)) +
                                             signed_of(static_cast<Sample>(top_right - top)) + 3) >>
                                            2));
        break;
      case Mode::kLeft:
        row[x] = left;
        break;
      case Mode::kGradient:
        row[x] = x == 0 ? top : static_cast<Sample>(left + top - top_left);
        break;
    }
  }
}

// Widths of the sixteen groups of a row pair. kFolded: residuals are signed, and a number and its complement take the
// same bits.
template <bool kFolded, class Sample>
void widths_of(const PairResiduals<Sample>& residuals, std::uint8_t* widths) {
  constexpr int kSign = 8 * sizeof(Sample) - 1;
  Sample any[kTileSide], folded[kTileSide];
  for (int x = 0; x < kTileSide; ++x) {
    const Sample a = residuals.rows[0][x], b = residuals.rows[1][x];
    any[x] = static_cast<Sample>(a | b);
    folded[x] = static_cast<Sample>((a ^ (signed_of(a) >> kSign)) | (b ^ (signed_of(b) >> kSign)));
  }
  for (int group = 0; group < kTileSide / 2; ++group) {
    const auto all = static_cast<std::uint32_t>(any[2 * group] | any[2 * group + 1]);
    const auto bits = static_cast<std::uint32_t>(folded[2 * group] | folded[2 * group + 1]);
    widths[group] =
        static_cast<std::uint8_t>(kFolded ? std::bit_width(bits) + (all != 0 ? 1 : 0) : std::bit_width(all));
  }
}

template <class Sample>
bool is_zero(const PairResiduals<Sample>& residuals) {
  Sample any = 0;
  for (const auto& row : residuals.rows) {
    for (const Sample residual : row) any = static_cast<Sample>(any | residual);
  }
  return any == 0;
}

// The codes of a row pair; returns the bytes of their payload.
template <bool kFolded, class Sample>
std::size_t choose_codes(const PairResiduals<Sample>& residuals, const CodeChooser& chooser, std::uint8_t* codes) {
  std::uint8_t widths[kTileSide / 2];
  widths_of<kFolded>(residuals, widths);
  std::size_t bytes = 0;
  for (int i = 0; i < kCodesOfPair; ++i) {
    codes[i] = chooser.code_for(widths + kGroupsOfCode * i);
    bytes += chooser.book().bytes[codes[i]];
  }
  return bytes;
}

// Two rows of a plane, with the row above them before them.
template <class Sample>
struct RowPair {
  Sample (*rows)[kTileSide];  // the upper one; rows[-1] is the one above
  int width, height;          // that are in the picture: 1 ... kTileSide, 1 or 2

  bool is_whole() const { return width == kTileSide && height == 2; }
};

// What lies outside the picture becomes what is predicted there.
template <class Sample>
void complete(Mode mode, const RowPair<Sample>& pair) {
  if (pair.is_whole()) return;
  for (int y = 0; y < 2; ++y) complete_row(mode, pair.rows[y - 1], y < pair.height ? pair.width : 0, pair.rows[y]);
}

template <class Sample>
void make_residuals(Mode mode, const RowPair<Sample>& pair, PairResiduals<Sample>& residuals) {
  complete(mode, pair);
  for (int y = 0; y < 2; ++y) known_residuals(mode, pair.rows[y - 1], pair.rows[y], residuals.rows[y]);
}

// How a row pair of a plane is coded.
struct PairChoice {
  Mode mode = Mode::kZero;
  std::size_t bytes = 0;  // of its payload
  std::uint8_t codes[kCodesOfPair];
};

// The mode that takes the fewest bytes, of equals the first. Outside the picture samples become those of that mode.
template <class Sample>
PairChoice choose_mode(const RowPair<Sample>& pair, const CodeChooser& chooser) {
  PairChoice best;
  PairResiduals<Sample> residuals;
  make_residuals(Mode::kZero, pair, residuals);
  if (is_zero(residuals)) return best;
  best.bytes = SIZE_MAX;
  for (const Mode mode : {Mode::kSmooth, Mode::kLeft, Mode::kGradient}) {
    PairChoice choice{.mode = mode, .bytes = 0, .codes = {}};
    make_residuals(mode, pair, residuals);
    choice.bytes = choose_codes<true>(residuals, chooser, choice.codes);
    if (choice.bytes < best.bytes) best = choice;
  }
  complete(best.mode, pair);
  return best;
}

// Appends the payload of one code: its groups' bits, the lowest first. Writes up to 8 bytes behind it.
template <class Sample>
std::uint8_t* write_payload(const PairResiduals<Sample>& residuals, int place, const Code& code, std::uint8_t* out) {
  std::uint64_t held = 0;
  unsigned held_bits = 0;  // under 8 before each group
  for (int group = 0; group < kGroupsOfCode; ++group) {
    const unsigned width = code.widths[group];
    const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
    const int x = 8 * place + 2 * group;
    for (int half = 0; half < 2; ++half) {  // two samples: at most 32 bits
      const std::uint64_t pair = (residuals.rows[half][x] & mask) | (residuals.rows[half][x + 1] & mask) << width;
      held |= pair << held_bits;
      held_bits += 2 * width;
      std::memcpy(out, &held, sizeof held);
      out += held_bits / 8;
      held = held_bits / 8 == 8 ? 0 : held >> (held_bits / 8 * 8);
      held_bits %= 8;
    }
  }
  return out;
}

// The payload of a row pair; returns its end.
template <class Sample>
std::uint8_t* write_codes(const PairResiduals<Sample>& residuals, const Book& book, const std::uint8_t* codes,
                          std::uint8_t* out) {
  for (int place = 0; place < kCodesOfPair; ++place)
    out = write_payload(residuals, place, book.codes[codes[place]], out);
  return out;
}

}  // namespace
}  // namespace millrace::kernels::l3
