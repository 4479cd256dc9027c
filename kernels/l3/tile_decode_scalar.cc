// Tiles by plain loops: all kinds, 8 and 16 bits.
#include <array>

#include "kernels/l3/tile_decode.h"

namespace millrace::kernels::l3 {
namespace {

template <class Sample>
Sample sample_at(const std::uint8_t* bytes) {
  Sample sample;
  std::memcpy(&sample, bytes, sizeof sample);
  return sample;
}

// A sample as a signed number: s(x) of README.md.
int sign(std::uint8_t x) {
  return static_cast<std::int8_t>(x);
}
int sign(std::uint16_t x) {
  return static_cast<std::int16_t>(x);
}

enum class Numbers { kSigned, kUnsigned };

// The codes of a tile and their payload, a row pair at a time.
template <Numbers kNumbers>
class PairReader {
 public:
  PairReader(const TileParts& parts, const Book& book) : book_(book), code_(parts.codes), payload_(parts.payload) {}

  // 2 rows of 32 residuals.
  template <class Sample>
  void read(Sample* residuals) {
    for (int place = 0; place < kCodesOfPair; ++place) read_code(residuals + 8 * place);
  }

 private:
  template <class Sample>
  void read_code(Sample* out) {
    const Code& code = book_.codes[*code_];
    unsigned bit = 0;
    for (int group = 0; group < kGroupsOfCode; ++group) {
      const unsigned width = code.widths[group];
      for (int i = 0; i < 4; ++i, bit += width)
        out[i / 2 * kTileSide + 2 * group + i % 2] = static_cast<Sample>(residual(bit, width));
    }
    payload_ += book_.bytes[*code_++];
  }

  std::uint32_t residual(unsigned bit, unsigned width) const {
    if (width == 0) return 0;
    const auto word = sample_at<std::uint32_t>(payload_ + bit / 8) >> bit % 8 << (32 - width);
    if constexpr (kNumbers == Numbers::kUnsigned) return word >> (32 - width);
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(word) >> (32 - width));
  }

  const Book& book_;
  const std::uint8_t* code_;
  const std::uint8_t* payload_;
};

// A row of 32 samples from the one above it.
template <class Sample>
void predict_row(Mode mode, const Sample* above, const Sample* residuals, Sample* row) {
  switch (mode) {
    case Mode::kZero:
      std::copy_n(above, kTileSide, row);
      return;
    case Mode::kSmooth:
      for (int x = 0; x < kTileSide; ++x) {
        const Sample top = above[x], left = above[x == 0 ? 0 : x - 1], right = above[x == kTileSide - 1 ? x : x + 1];
        const int smooth = sign(static_cast<Sample>(left - top)) + sign(static_cast<Sample>(right - top)) + 3;
        row[x] = static_cast<Sample>(top + (smooth >> 2) + residuals[x]);
      }
      return;
    case Mode::kLeft: {
      Sample sum = above[0];
      for (int x = 0; x < kTileSide; ++x) row[x] = sum = static_cast<Sample>(sum + residuals[x]);
      return;
    }
    case Mode::kGradient: {
      Sample sum = 0;
      for (int x = 0; x < kTileSide; ++x) {
        sum = static_cast<Sample>(sum + residuals[x]);
        row[x] = static_cast<Sample>(above[x] + sum);
      }
      return;
    }
  }
}

template <class Sample>
void undo(Transform transform, Sample* planes) {
  Sample* const first = planes;
  Sample* const second = planes + kTilePixels;
  Sample* const third = planes + 2 * kTilePixels;
  const auto each = [&](auto change) {
    for (int i = 0; i < kTilePixels; ++i) change(first[i], second[i], third[i]);
  };
  const auto half = [](Sample x) { return sign(x) >> 1; };
  switch (transform) {
    case Transform::kGreen:
      return each([](Sample& p, Sample& q, Sample& t) {
        p = static_cast<Sample>(p + q);
        t = static_cast<Sample>(t + q);
      });
    case Transform::kNone:
      return;
    case Transform::kGreenRed:
      return each([&](Sample& p, Sample& q, Sample& t) {
        t = static_cast<Sample>(t + q + half(p));
        p = static_cast<Sample>(p + q);
      });
    case Transform::kYcocg:
      return each([&](Sample& p, Sample& q, Sample& t) {
        const auto m = static_cast<Sample>(q - half(t)), blue = static_cast<Sample>(m - half(p));
        q = static_cast<Sample>(m + t);
        p = static_cast<Sample>(blue + p);
        t = blue;
      });
  }
}

template <class Sample>
void decode_coded(const TileShape& shape, const TileParts& parts, Sample* planes) {
  PairReader<Numbers::kSigned> codes(parts, book_of(parts.kind, shape.bytes));
  std::array<std::array<Sample, kTileSide>, kMostChannels> origins;
  for (int c = 0; c < shape.channels; ++c)
    origins[static_cast<std::size_t>(c)].fill(sample_at<Sample>(parts.origins + c * shape.bytes));
  for (int pair = 0; pair < kRowPairs; ++pair) {
    for (int c = 0; c < shape.channels; ++c) {
      Sample* const rows = planes + c * kTilePixels + 2 * pair * kTileSide;
      const Sample* const above = pair == 0 ? origins[static_cast<std::size_t>(c)].data() : rows - kTileSide;
      const Mode mode = mode_of(parts.modes[c], pair);
      std::array<Sample, 2 * kTileSide> residuals;
      if (mode != Mode::kZero) codes.read(residuals.data());
      predict_row(mode, above, residuals.data(), rows);
      predict_row(mode, rows, residuals.data() + kTileSide, rows + kTileSide);
    }
  }
  if (shape.channels >= 3) undo(parts.transform, planes);
}

template <class Sample>
void decode_few(const TileShape& shape, const TileParts& parts, Sample* planes) {
  std::array<std::array<Sample, 256>, kMostChannels> colours{};  // a number without a colour is a pixel of zeros
  for (int i = 0; i < parts.colours; ++i) {
    for (int c = 0; c < shape.channels; ++c)
      colours[static_cast<std::size_t>(c)][static_cast<std::size_t>(i)] =
          sample_at<Sample>(parts.palette + i * shape.pixel_bytes() + c * shape.bytes);
  }
  PairReader<Numbers::kUnsigned> codes(parts, kBook8);
  for (int pair = 0; pair < kRowPairs; ++pair) {
    std::array<std::uint8_t, 2 * kTileSide> numbers{};
    if (mode_of(parts.modes[0], pair) != Mode::kZero) codes.read(numbers.data());
    for (int c = 0; c < shape.channels; ++c) {
      Sample* const rows = planes + c * kTilePixels + 2 * pair * kTileSide;
      for (std::size_t i = 0; i < numbers.size(); ++i) rows[i] = colours[static_cast<std::size_t>(c)][numbers[i]];
    }
  }
}

template <class Sample>
void decode_raw(const TileShape& shape, const TileParts& parts, Sample* planes) {
  for (int c = 0; c < shape.channels; ++c) {
    const std::uint8_t* from = parts.payload + c * shape.bytes;
    for (int y = 0; y < kTileSide; ++y) {
      Sample* const row = planes + c * kTilePixels + y * kTileSide;
      std::fill_n(row, kTileSide, Sample{0});
      for (int x = 0; x < shape.width && y < shape.height; ++x, from += shape.pixel_bytes())
        row[x] = sample_at<Sample>(from);
    }
  }
}

template <class Sample>
void decode_as(const TileShape& shape, const TileParts& parts, Sample* planes) {
  switch (parts.kind) {
    case TileKind::kCoded:
      return decode_coded(shape, parts, planes);
    case TileKind::kFew:
      return decode_few(shape, parts, planes);
    case TileKind::kRaw:
      return decode_raw(shape, parts, planes);
  }
}

}  // namespace

void decode_parts_scalar(const TileShape& shape, const TileParts& parts, std::uint8_t* planes) {
  if (shape.bytes == 1) return decode_as(shape, parts, planes);
  decode_as(shape, parts, reinterpret_cast<std::uint16_t*>(planes));
}

TileFault decode_tile_scalar(const TileShape& shape, FileBytes tile_untrusted, std::uint8_t* planes) {
  TileParts parts;
  const TileFault fault = split_tile(shape, tile_untrusted, parts);
  if (fault == TileFault::kNone) decode_parts_scalar(shape, parts, planes);
  return fault;
}

void interleave_scalar(const std::uint8_t* red, const std::uint8_t* green, const std::uint8_t* blue, int count,
                       std::uint8_t* out) {
  for (int x = 0; x < count; ++x, out += 3) out[0] = red[x], out[1] = green[x], out[2] = blue[x];
}

}  // namespace millrace::kernels::l3
