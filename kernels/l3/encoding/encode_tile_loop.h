// The tile encoder, compiled once for each instruction set: plain loops over arrays of 32, which the compiler turns into
// vectors. It writes the bytes that reference::encode_tile() writes. Included once by each encode_tile_*.cc, within its
// pragma. Internal to kernels/l3.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "kernels/l3/encoding/code_chooser.h"
#include "kernels/l3/encoding/encode_pair.h"
#include "kernels/l3/encoding/encoder.h"
#include "kernels/l3/encoding/tile_colours.h"

namespace millrace::kernels::l3 {
namespace {

// Modes and codes of a tile, and how much payload they have.
template <class Sample>
struct TileRoom {
  static constexpr std::size_t kCodesAtMost = std::size_t{kMostChannels} * kRowPairs * kCodesOfPair;
  static constexpr std::size_t kPayloadAtMost = std::size_t{kMostChannels} * kTilePixels * sizeof(Sample);

  std::array<std::uint32_t, kMostChannels> modes{};
  std::array<std::uint8_t, kCodesAtMost> codes;
  std::size_t code_count = 0;
  std::size_t payload_bytes = 0;

  std::size_t coded_bytes() const { return code_count + payload_bytes; }
  void clear() {
    modes = {};
    code_count = payload_bytes = 0;
  }
  void append(int pair, int channel, const PairChoice& choice) {
    modes[static_cast<std::size_t>(channel)] |= static_cast<std::uint32_t>(choice.mode) << (2 * pair);
    std::copy_n(choice.codes, kCodesOfPair, codes.data() + code_count);
    code_count += kCodesOfPair;
    payload_bytes += choice.bytes;
  }
};

// Planes of a tile, and one row above each that holds the origin.
template <class Sample>
struct TilePlanes {
  alignas(64) Sample rows[kMostChannels][kTileSide + 1][kTileSide];
};

// Codes of a tile, and its payload.
template <class Sample>
class TileWriter {
 public:
  explicit TileWriter(const SampleView& pixels) : pixels_(pixels) {}

  // Each row pair of the planes in its best mode.
  void choose(TilePlanes<Sample>& planes) {
    room_.clear();
    const CodeChooser& chooser = CodeChooser::of_bits(8 * sizeof(Sample));
    for_each_pair([&](int number, int channel) {
      const PairChoice choice = choose_mode(pair_of(planes, number, channel), chooser);
      if (choice.mode != Mode::kZero) room_.append(number, channel, choice);
    });
  }

  // The payload of planes that choose() was given, or of equal ones.
  void write(TilePlanes<Sample>& planes) {
    const Book& book = CodeChooser::of_bits(8 * sizeof(Sample)).book();
    const std::uint8_t* codes = room_.codes.data();
    std::uint8_t* end = payload_.data();
    for_each_pair([&](int number, int channel) {
      const RowPair<Sample> pair = pair_of(planes, number, channel);
      const Mode mode = mode_of(room_.modes[static_cast<std::size_t>(channel)], number);
      if (mode == Mode::kZero) return complete(mode, pair);
      PairResiduals<Sample> residuals;
      make_residuals(mode, pair, residuals);
      end = write_codes(residuals, book, codes, end);
      codes += kCodesOfPair;
    });
  }

  // One plane of numbers, which are not predicted: their codes and their payload.
  void write_numbers(const std::array<std::uint8_t, kTilePixels>& numbers) {
    room_.clear();
    const CodeChooser& chooser = CodeChooser::of_bits(8);
    std::uint8_t* end = payload_.data();
    for (int number = 0; 2 * number < pixels_.size.height; ++number) {
      PairResiduals<std::uint8_t> values;
      std::memcpy(values.rows, numbers.data() + std::size_t{2} * kTileSide * static_cast<std::size_t>(number),
                  sizeof values.rows);
      if (is_zero(values)) continue;
      PairChoice choice{.mode = Mode::kSmooth, .bytes = 0, .codes = {}};
      choice.bytes = choose_codes<false>(values, chooser, choice.codes);
      room_.append(number, 0, choice);
      end = write_codes(values, chooser.book(), choice.codes, end);
    }
  }

  const TileRoom<Sample>& room() const { return room_; }
  void set_room(const TileRoom<Sample>& room) { room_ = room; }
  const std::uint8_t* payload() const { return payload_.data(); }

 private:
  template <class Do>
  void for_each_pair(const Do& act) const {
    for (int number = 0; 2 * number < pixels_.size.height; ++number) {
      for (int channel = 0; channel < pixels_.channels; ++channel) act(number, channel);
    }
  }

  RowPair<Sample> pair_of(TilePlanes<Sample>& planes, int number, int channel) const {
    return {planes.rows[channel] + 1 + 2 * number, pixels_.size.width, std::min(2, pixels_.size.height - 2 * number)};
  }

  const SampleView& pixels_;
  TileRoom<Sample> room_;
  std::array<std::uint8_t, TileRoom<Sample>::kPayloadAtMost + 16> payload_;
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

// Three planes after a transform; columns outside the picture have some numbers.
template <class Sample>
void transform_row(Transform transform, const Sample* red, const Sample* green, const Sample* blue, Sample* p,
                   Sample* q, Sample* t) {
  for (int x = 0; x < kTileSide; ++x) {
    const Sample r = red[x], g = green[x], b = blue[x];
    const auto red_less = static_cast<Sample>(r - (transform == Transform::kYcocg ? b : g));
    const auto half = static_cast<Sample>(signed_of(red_less) >> 1);
    if (transform == Transform::kYcocg) {
      const auto m = static_cast<Sample>(b + half), rest = static_cast<Sample>(g - m);
      p[x] = red_less, q[x] = static_cast<Sample>(m + (signed_of(rest) >> 1)), t[x] = rest;
    } else {
      p[x] = red_less, q[x] = g;
      t[x] = static_cast<Sample>(b - g - (transform == Transform::kGreenRed ? half : 0));
    }
  }
}

// The planes of a tile after a transform, and above each its first sample.
template <class Sample>
void make_planes(const TilePlanes<Sample>& taken, const SampleView& pixels, Transform transform,
                 TilePlanes<Sample>& planes) {
  const bool transforms = pixels.channels >= 3 && transform != Transform::kNone;
  for (int y = 1; y <= pixels.size.height && transforms; ++y) {
    const Sample *const red = taken.rows[0][y], *const green = taken.rows[1][y], *const blue = taken.rows[2][y];
    Sample *const p = planes.rows[0][y], *const q = planes.rows[1][y], *const t = planes.rows[2][y];
    if (transform == Transform::kGreen) transform_row(Transform::kGreen, red, green, blue, p, q, t);
    if (transform == Transform::kGreenRed) transform_row(Transform::kGreenRed, red, green, blue, p, q, t);
    if (transform == Transform::kYcocg) transform_row(Transform::kYcocg, red, green, blue, p, q, t);
  }
  for (int c = transforms ? 3 : 0; c < pixels.channels; ++c)
    std::memcpy(planes.rows[c], taken.rows[c], sizeof planes.rows[c]);
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
  TilePlanes<Sample> taken{}, planes;
  take_planes(pixels, taken);
  TileWriter<Sample> coded(pixels);
  TileRoom<Sample> best_room;
  std::size_t best_bytes = SIZE_MAX;
  int best = 0;
  for (int transform = 0; transform < transforms; ++transform) {
    make_planes(taken, pixels, static_cast<Transform>(transform), planes);
    coded.choose(planes);
    const std::size_t bytes = head + coded.room().coded_bytes();
    if (bytes < best_bytes) best = transform, best_bytes = bytes, best_room = coded.room();
  }
  Colours<Sample> colours;
  std::array<std::uint8_t, kTilePixels> numbers;
  TileWriter<Sample> few(pixels);
  bool has_few = colours.count(pixels, best_bytes, numbers);
  if (has_few) {
    std::size_t bytes = 2 + colours.size() * channels * sizeof(Sample);
    if (colours.size() > 1) few.write_numbers(numbers), bytes += sizeof(std::uint32_t) + few.room().coded_bytes();
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
  if (best != transforms - 1) make_planes(taken, pixels, static_cast<Transform>(best), planes);
  coded.set_room(best_room);
  coded.write(planes);
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
