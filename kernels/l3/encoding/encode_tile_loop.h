// The tile encoder, compiled once for each instruction set: plain loops over arrays of 32, which the compiler turns into
// vectors. It writes the bytes that reference::encode_tile() writes. Included once by each encode_tile_*.cc, within its
// pragma. Internal to kernels/l3.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "kernels/l3/encoding/code_chooser.h"
#include "kernels/l3/encoding/encoder.h"
#include "kernels/l3/encoding/tile_colours.h"

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

// Modes and codes of a tile, and how much payload they have.
template <class Sample>
struct TileRoom {
  static constexpr std::size_t kCodesAtMost = std::size_t{kMostChannels} * kRowPairs * kCodesOfPair;
  static constexpr std::size_t kPayloadAtMost = std::size_t{kMostChannels} * kTilePixels * sizeof(Sample);

  std::array<std::uint32_t, kMostChannels> modes{};
  std::array<std::uint8_t, kCodesAtMost> codes;
  std::size_t code_count = 0;
  std::size_t payload_bytes = 0;
};

// Planes of a tile, and one row above each that holds the origin.
template <class Sample>
struct TilePlanes {
  alignas(64) Sample rows[kMostChannels][kTileSide + 1][kTileSide];
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

// Appends the payload of one code: its groups' bits, the lowest first.
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

// A tile in the making.
template <class Sample>
class TileWriter {
 public:
  explicit TileWriter(const SampleView& pixels) : pixels_(pixels) {}

  // Bytes of modes, codes and payload of the planes, each row pair in its best mode.
  void write_planes(TilePlanes<Sample>& planes) {
    start();
    for (int pair = 0; 2 * pair < pixels_.size.height; ++pair) {
      for (int c = 0; c < pixels_.channels; ++c) write_pair(planes.rows[c] + 1 + 2 * pair, pair, c);
    }
  }

  // The same of one plane of numbers, which are not predicted.
  void write_numbers(const std::array<std::uint8_t, kTilePixels>& numbers) {
    start();
    for (int pair = 0; 2 * pair < pixels_.size.height; ++pair) {
      PairResiduals<std::uint8_t> residuals;
      std::memcpy(residuals.rows, numbers.data() + std::size_t{2} * kTileSide * static_cast<std::size_t>(pair),
                  sizeof residuals.rows);
      if (is_zero(residuals)) continue;
      room_.modes[0] |= static_cast<std::uint32_t>(Mode::kSmooth) << (2 * pair);
      const CodeChooser& chooser = CodeChooser::of_bits(8);
      std::uint8_t* const codes = room_.codes.data() + room_.code_count;
      choose_codes<false>(residuals, chooser, codes);
      append(residuals, chooser.book(), codes);
    }
  }

  std::size_t coded_bytes() const { return room_.code_count + room_.payload_bytes; }
  const TileRoom<Sample>& room() const { return room_; }
  const std::uint8_t* payload() const { return payload_.data(); }

 private:
  void start() {
    room_.modes = {};
    room_.code_count = room_.payload_bytes = 0;
    room_end_ = payload_.data();
  }

  template <class Residual>
  static bool is_zero(const PairResiduals<Residual>& residuals) {
    Residual any = 0;
    for (const auto& row : residuals.rows) {
      for (const Residual residual : row) any = static_cast<Residual>(any | residual);
    }
    return any == 0;
  }

  template <class Residual>
  void append(const PairResiduals<Residual>& residuals, const Book& book, const std::uint8_t* codes) {
    for (int place = 0; place < kCodesOfPair; ++place)
      room_end_ = write_payload(residuals, place, book.codes[codes[place]], room_end_);
    room_.code_count += kCodesOfPair;
    room_.payload_bytes = static_cast<std::size_t>(room_end_ - payload_.data());
  }

  // Residuals of two rows, of which `rows` begins with the upper one and has the one above before it. Completes them.
  void make_residuals(Mode mode, Sample (*rows)[kTileSide], int rows_inside, PairResiduals<Sample>& residuals) const {
    for (int y = 0; y < 2; ++y) {
      const Sample* const above = rows[y - 1];
      Sample* const row = rows[y];
      const int width = y < rows_inside ? pixels_.size.width : 0;
      if (width < kTileSide) complete_row(mode, above, width, row);
      known_residuals(mode, above, row, residuals.rows[y]);
    }
  }

  void write_pair(Sample (*rows)[kTileSide], int pair, int channel) {
    const int inside = std::min(2, pixels_.size.height - 2 * pair);
    PairResiduals<Sample> residuals[4];
    make_residuals(Mode::kZero, rows, inside, residuals[0]);
    if (is_zero(residuals[0])) return;
    const CodeChooser& chooser = CodeChooser::of_bits(8 * sizeof(Sample));
    std::uint8_t codes[4][kCodesOfPair];
    std::size_t best_bytes = SIZE_MAX;
    int best = 0;
    for (int mode = 1; mode < 4; ++mode) {
      make_residuals(static_cast<Mode>(mode), rows, inside, residuals[mode]);
      const std::size_t bytes = choose_codes<true>(residuals[mode], chooser, codes[mode]);
      if (bytes < best_bytes) best = mode, best_bytes = bytes;
    }
    if (pixels_.size.width < kTileSide || inside < 2)
      make_residuals(static_cast<Mode>(best), rows, inside, residuals[best]);
    room_.modes[static_cast<std::size_t>(channel)] |= static_cast<std::uint32_t>(best) << (2 * pair);
    std::copy_n(codes[best], kCodesOfPair, room_.codes.data() + room_.code_count);
    append(residuals[best], chooser.book(), codes[best]);
  }

  const SampleView& pixels_;
  TileRoom<Sample> room_;
  std::array<std::uint8_t, TileRoom<Sample>::kPayloadAtMost + 16> payload_;
  std::uint8_t* room_end_ = nullptr;
};

template <int kChannels, class Sample>
void take_row(const std::uint8_t* from, int width, Sample* const* to) {
  Sample samples[kChannels * kTileSide];
  std::memcpy(samples, from, sizeof(Sample) * static_cast<std::size_t>(width * kChannels));
  for (int x = 0; x < width; ++x) {
    for (int c = 0; c < kChannels; ++c) to[c][x] = samples[kChannels * x + c];
  }
}

template <class Sample>
void take_planes(const SampleView& pixels, TilePlanes<Sample>& planes) {
  for (int y = 0; y < pixels.size.height; ++y) {
    Sample* const to[] = {planes.rows[0][y + 1], planes.rows[1][y + 1], planes.rows[2][y + 1], planes.rows[3][y + 1]};
    const std::uint8_t* const from = pixels.row(y);
    const int width = pixels.size.width;
    if (pixels.channels == 1) take_row<1>(from, width, to);
    if (pixels.channels == 2) take_row<2>(from, width, to);
    if (pixels.channels == 3) take_row<3>(from, width, to);
    if (pixels.channels == 4) take_row<4>(from, width, to);
  }
}

// The planes of a tile after a transform, and above each its first sample.
template <class Sample>
void make_planes(const SampleView& pixels, Transform transform, TilePlanes<Sample>& planes) {
  const int width = pixels.size.width, height = pixels.size.height;
  take_planes(pixels, planes);
  for (int y = 1; y <= height && pixels.channels >= 3; ++y) {
    Sample *const first = planes.rows[0][y], *const second = planes.rows[1][y], *const third = planes.rows[2][y];
    for (int x = 0; x < width; ++x) {
      const Sample r = first[x], g = second[x], b = third[x];
      if (transform == Transform::kGreen) {
        first[x] = static_cast<Sample>(r - g), third[x] = static_cast<Sample>(b - g);
      } else if (transform == Transform::kGreenRed) {
        const auto p = static_cast<Sample>(r - g);
        first[x] = p, third[x] = static_cast<Sample>(b - g - (signed_of(p) >> 1));
      } else if (transform == Transform::kYcocg) {
        const auto p = static_cast<Sample>(r - b), m = static_cast<Sample>(b + (signed_of(p) >> 1)),
                   t = static_cast<Sample>(g - m);
        first[x] = p, second[x] = static_cast<Sample>(m + (signed_of(t) >> 1)), third[x] = t;
      }
    }
  }
  for (int c = 0; c < pixels.channels; ++c) std::fill_n(planes.rows[c][0], kTileSide, planes.rows[c][1][0]);
}

template <class Sample>
void append_coded(const TileWriter<Sample>& writer, int channels, std::vector<std::uint8_t>& out) {
  const auto& room = writer.room();
  for (int c = 0; c < channels; ++c) {
    for (int i = 0; i < 4; ++i)
      out.push_back(static_cast<std::uint8_t>(room.modes[static_cast<std::size_t>(c)] >> (8 * i)));
  }
  out.insert(out.end(), room.codes.begin(), room.codes.begin() + static_cast<std::ptrdiff_t>(room.code_count));
  out.insert(out.end(), writer.payload(), writer.payload() + room.payload_bytes);
}

template <class Sample>
void append_raw(const SampleView& pixels, std::vector<std::uint8_t>& out) {
  out.push_back(static_cast<std::uint8_t>(TileKind::kRaw));
  for (int y = 0; y < pixels.size.height; ++y)
    out.insert(
        out.end(), pixels.row(y),
        pixels.row(y) + std::size_t{sizeof(Sample)} * static_cast<std::size_t>(pixels.size.width * pixels.channels));
}

// The shortest of all that there are; of equals the first.
template <class Sample>
void encode_as(const SampleView& pixels, Effort effort, std::vector<std::uint8_t>& out) {
  const auto channels = static_cast<std::size_t>(pixels.channels);
  const std::size_t head = 1 + channels * (sizeof(Sample) + sizeof(std::uint32_t));
  const int transforms = pixels.channels >= 3 && effort == Effort::kBest ? 4 : 1;
  TilePlanes<Sample> planes;
  TileWriter<Sample> coded(pixels);
  std::size_t best_bytes = SIZE_MAX;
  int best = 0;
  for (int transform = 0; transform < transforms; ++transform) {
    make_planes(pixels, static_cast<Transform>(transform), planes);
    coded.write_planes(planes);
    if (head + coded.coded_bytes() < best_bytes) best = transform, best_bytes = head + coded.coded_bytes();
  }
  Colours<Sample> colours;
  std::array<std::uint8_t, kTilePixels> numbers;
  TileWriter<Sample> few(pixels);
  bool has_few = colours.count(pixels, numbers);
  if (has_few) {
    std::size_t bytes = 2 + colours.size() * channels * sizeof(Sample);
    if (colours.size() > 1) few.write_numbers(numbers), bytes += sizeof(std::uint32_t) + few.coded_bytes();
    has_few = bytes < best_bytes;
    best_bytes = std::min(best_bytes, bytes);
  }
  const std::size_t raw =
      1 + static_cast<std::size_t>(pixels.size.width * pixels.size.height) * channels * sizeof(Sample);
  if (raw < best_bytes) return append_raw<Sample>(pixels, out);
  if (has_few) {
    out.push_back(static_cast<std::uint8_t>(TileKind::kFew));
    out.push_back(static_cast<std::uint8_t>(colours.size() - 1));
    colours.append_to(pixels.channels, out);
    if (colours.size() > 1) append_coded(few, 1, out);
    return;
  }
  if (best != transforms - 1) {
    make_planes(pixels, static_cast<Transform>(best), planes);
    coded.write_planes(planes);
  }
  out.push_back(static_cast<std::uint8_t>(pixels.channels >= 3 ? best << 2 : 0));
  for (std::size_t c = 0; c < channels; ++c) {
    const Sample origin = planes.rows[c][0][0];
    for (std::size_t b = 0; b < sizeof origin; ++b) out.push_back(static_cast<std::uint8_t>(origin >> (8 * b)));
  }
  append_coded(coded, pixels.channels, out);
}

void encode_tile_here(const SampleView& pixels, Effort effort, std::vector<std::uint8_t>& out) {
  if (pixels.bytes == 1) return encode_as<std::uint8_t>(pixels, effort, out);
  encode_as<std::uint16_t>(pixels, effort, out);
}

}  // namespace
}  // namespace millrace::kernels::l3
