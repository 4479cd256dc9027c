#include "kernels/l3/reference.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <optional>

namespace millrace::kernels::l3::reference {
namespace {

using Samples = std::array<std::uint32_t, kTilePixels>;  // of a channel, row by row
using Residuals = std::array<std::int32_t, kTilePixels>;
using Bytes = std::vector<std::uint8_t>;

// Arithmetic modulo 2^depth.
struct Depth {
  int bits;

  std::uint32_t cut(std::uint32_t x) const { return x & ((1U << bits) - 1); }
  std::int32_t sign(std::uint32_t x) const {  // s(x) of README.md
    const auto half = std::int32_t{1} << (bits - 1);
    return (static_cast<std::int32_t>(cut(x)) ^ half) - half;
  }
};

std::uint32_t number_at(const std::uint8_t* bytes, int size) {
  return size == 1 ? bytes[0] : static_cast<std::uint32_t>(bytes[0] | bytes[1] << 8);
}

// What a row pair's mode predicts at (x, y), from the samples before it.
std::uint32_t predicted(const Samples& plane, std::uint32_t origin, Depth depth, Mode mode, int x, int y) {
  const auto above = [&](int column) {
    if (y == 0) return origin;
    return plane[static_cast<std::size_t>((y - 1) * kTileSide + std::clamp(column, 0, kTileSide - 1))];
  };
  const std::uint32_t top = above(x), top_left = above(x - 1), top_right = above(x + 1);
  const std::uint32_t left = x == 0 ? top : plane[static_cast<std::size_t>(y * kTileSide + x - 1)];
  switch (mode) {
    case Mode::kZero:
      return top;
    case Mode::kSmooth:
      return depth.cut(top +
                       static_cast<std::uint32_t>((depth.sign(top_left - top) + depth.sign(top_right - top) + 3) >> 2));
    case Mode::kLeft:
      return left;
    case Mode::kGradient:
      return x == 0 ? top : depth.cut(left + top - top_left);
  }
  return 0;
}

// Where the residual `i` of the code for the columns from 8 * code on is, within a row pair.
std::size_t place_in_pair(int code, int i) {
  const int group = i / 4, row = i % 4 / 2, column = 8 * code + 2 * group + i % 2;
  return static_cast<std::size_t>(row * kTileSide + column);
}

// The residuals of a row pair: 2 x 32. `is_signed`: two's complement.
class CodeReader {
 public:
  CodeReader(const TileParts& parts, const Book& book, bool is_signed)
      : book_(book), codes_(parts.codes), payload_(parts.payload), is_signed_(is_signed) {}

  void read_pair(std::int32_t* residuals) {
    for (int code = 0; code < kCodesOfPair; ++code) read_code(code, residuals);
  }

 private:
  void read_code(int place, std::int32_t* residuals) {
    const int code = *codes_++;
    int bit = 0;
    for (int i = 0; i < kSamplesOfCode; ++i) {
      const int width = book_.codes[code].widths[i / 4];
      std::uint32_t value = 0;
      for (int k = 0; k < width; ++k, ++bit)
        value |= static_cast<std::uint32_t>(payload_[bit / 8] >> (bit % 8) & 1) << k;
      residuals[place_in_pair(place, i)] =
          is_signed_ && width != 0 ? Depth{width}.sign(value) : static_cast<std::int32_t>(value);
    }
    payload_ += book_.bytes[code];
  }

  const Book& book_;
  const std::uint8_t* codes_;
  const std::uint8_t* payload_;
  bool is_signed_;
};

void undo(Transform transform, Depth depth, std::array<Samples, kMostChannels>& planes) {
  for (std::size_t i = 0; i < kTilePixels; ++i) {
    std::uint32_t &p = planes[0][i], &q = planes[1][i], &t = planes[2][i];
    const auto half = [&](std::uint32_t x) { return static_cast<std::uint32_t>(depth.sign(x) >> 1); };
    switch (transform) {
      case Transform::kGreen:
        p += q, t += q;
        break;
      case Transform::kNone:
        break;
      case Transform::kGreenRed:
        t += q + half(p), p += q;
        break;
      case Transform::kYcocg: {
        const std::uint32_t m = q - half(t), b = m - half(p);
        q = m + t, p = b + p, t = b;
        break;
      }
    }
    p = depth.cut(p), q = depth.cut(q), t = depth.cut(t);
  }
}

void apply(Transform transform, Depth depth, std::array<Samples, kMostChannels>& planes) {
  for (std::size_t i = 0; i < kTilePixels; ++i) {
    std::uint32_t &r = planes[0][i], &g = planes[1][i], &b = planes[2][i];
    const auto half = [&](std::uint32_t x) { return static_cast<std::uint32_t>(depth.sign(x) >> 1); };
    switch (transform) {
      case Transform::kGreen:
        r -= g, b -= g;
        break;
      case Transform::kNone:
        break;
      case Transform::kGreenRed:
        r -= g, b = b - g - half(r);
        break;
      case Transform::kYcocg: {
        const std::uint32_t p = r - b, m = b + half(p), t = g - m;
        r = p, g = m + half(t), b = t;
        break;
      }
    }
    r = depth.cut(r), g = depth.cut(g), b = depth.cut(b);
  }
}

void decode_coded(const TileShape& shape, const TileParts& parts, std::array<Samples, kMostChannels>& planes) {
  const Depth depth{8 * shape.bytes};
  CodeReader codes(parts, book_of(parts.kind, shape.bytes), true);
  for (int pair = 0; pair < kRowPairs; ++pair) {
    for (int c = 0; c < shape.channels; ++c) {
      Samples& plane = planes[static_cast<std::size_t>(c)];
      const Mode mode = mode_of(parts.modes[c], pair);
      const std::uint32_t origin = number_at(parts.origins + c * shape.bytes, shape.bytes);
      std::array<std::int32_t, 2 * kTileSide> residuals{};
      if (mode != Mode::kZero) codes.read_pair(residuals.data());
      for (int i = 0; i < 2 * kTileSide; ++i) {
        const int x = i % kTileSide, y = 2 * pair + i / kTileSide;
        plane[static_cast<std::size_t>(y * kTileSide + x)] =
            depth.cut(predicted(plane, origin, depth, mode, x, y) +
                      static_cast<std::uint32_t>(residuals[static_cast<std::size_t>(i)]));
      }
    }
  }
  if (shape.channels >= 3) undo(parts.transform, depth, planes);
}

void decode_few(const TileShape& shape, const TileParts& parts, std::array<Samples, kMostChannels>& planes) {
  CodeReader codes(parts, kBook8, false);
  for (int pair = 0; pair < kRowPairs; ++pair) {
    std::array<std::int32_t, 2 * kTileSide> numbers{};
    if (mode_of(parts.modes[0], pair) != Mode::kZero) codes.read_pair(numbers.data());
    for (int i = 0; i < 2 * kTileSide; ++i) {
      const int number = numbers[static_cast<std::size_t>(i)];
      for (int c = 0; c < shape.channels; ++c) {
        const std::uint8_t* const colour = parts.palette + number * shape.pixel_bytes() + c * shape.bytes;
        planes[static_cast<std::size_t>(c)][static_cast<std::size_t>(2 * pair * kTileSide + i)] =
            number < parts.colours ? number_at(colour, shape.bytes) : 0;
      }
    }
  }
}

void decode_raw(const TileShape& shape, const TileParts& parts, std::array<Samples, kMostChannels>& planes) {
  const std::uint8_t* at = parts.payload;
  for (int y = 0; y < shape.height; ++y) {
    for (int x = 0; x < shape.width; ++x) {
      for (int c = 0; c < shape.channels; ++c, at += shape.bytes)
        planes[static_cast<std::size_t>(c)][static_cast<std::size_t>(y * kTileSide + x)] = number_at(at, shape.bytes);
    }
  }
}

// Bits that two's complement takes.
int bits_of(std::int32_t residual) {
  if (residual == 0) return 0;
  return std::bit_width(static_cast<std::uint32_t>(residual < 0 ? ~residual : residual)) + 1;
}

// The code with the least sum that is wide enough; of equals the lowest.
int code_for(const Book& book, const std::array<int, kGroupsOfCode>& widths) {
  int best = -1;
  for (int code = 0; code < kCodes; ++code) {
    const std::uint8_t* const has = book.codes[code].widths;
    if (!std::equal(widths.begin(), widths.end(), has, [](int want, int there) { return want <= there; })) continue;
    if (best < 0 || book.bytes[code] < book.bytes[best]) best = code;
  }
  return best;
}

struct Written {
  Bytes codes, payload;
  std::size_t size() const { return codes.size() + payload.size(); }
};

// The codes of a row pair of residuals.
Written write_pair(const Book& book, const std::int32_t* residuals, bool is_signed) {
  Written written;
  for (int place = 0; place < kCodesOfPair; ++place) {
    std::array<int, kGroupsOfCode> widths{};
    for (int i = 0; i < kSamplesOfCode; ++i) {
      const std::int32_t value = residuals[place_in_pair(place, i)];
      const int bits = is_signed ? bits_of(value) : static_cast<int>(std::bit_width(static_cast<std::uint32_t>(value)));
      int& width = widths[static_cast<std::size_t>(i / 4)];
      width = std::max(width, bits);
    }
    const int code = code_for(book, widths);
    written.codes.push_back(static_cast<std::uint8_t>(code));
    const std::size_t begin = written.payload.size();
    written.payload.resize(begin + book.bytes[code]);
    int bit = 0;
    for (int i = 0; i < kSamplesOfCode; ++i) {
      const auto value = static_cast<std::uint32_t>(residuals[place_in_pair(place, i)]);
      for (int k = 0; k < book.codes[code].widths[i / 4]; ++k, ++bit) {
        std::uint8_t& byte = written.payload[begin + static_cast<std::size_t>(bit / 8)];
        byte = static_cast<std::uint8_t>(byte | (value >> k & 1U) << (bit % 8));
      }
    }
  }
  return written;
}

// A row pair of a plane in one mode: samples outside the picture become what is predicted. nullopt: kZero is not true of it.
std::optional<Written> write_in_mode(const Book& book, Samples& plane, std::uint32_t origin, Depth depth, Mode mode,
                                     int pair, Size inside) {
  std::array<std::int32_t, 2 * kTileSide> residuals{};
  for (int i = 0; i < 2 * kTileSide; ++i) {
    const int x = i % kTileSide, y = 2 * pair + i / kTileSide;
    const std::uint32_t expected = predicted(plane, origin, depth, mode, x, y);
    std::uint32_t& sample = plane[static_cast<std::size_t>(y * kTileSide + x)];
    if (x >= inside.width || y >= inside.height) sample = expected;
    residuals[static_cast<std::size_t>(i)] = depth.sign(sample - expected);
  }
  if (mode != Mode::kZero) return write_pair(book, residuals.data(), true);
  const bool is_zero = std::all_of(residuals.begin(), residuals.end(), [](std::int32_t r) { return r == 0; });
  return is_zero ? std::optional<Written>(Written{}) : std::nullopt;
}

// The shortest of the four modes; of equals the first.
Mode write_best(const Book& book, Samples& plane, std::uint32_t origin, Depth depth, int pair, Size inside,
                Written& written) {
  std::optional<Written> best;
  Mode best_mode = Mode::kZero;
  Samples best_plane{};
  for (const Mode mode : {Mode::kZero, Mode::kSmooth, Mode::kLeft, Mode::kGradient}) {
    Samples tried = plane;
    const std::optional<Written> now = write_in_mode(book, tried, origin, depth, mode, pair, inside);
    if (!now || (best && best->size() <= now->size())) continue;
    best = now, best_mode = mode, best_plane = tried;
  }
  plane = best_plane;
  written.codes.insert(written.codes.end(), best->codes.begin(), best->codes.end());
  written.payload.insert(written.payload.end(), best->payload.begin(), best->payload.end());
  return best_mode;
}

void append(std::uint32_t number, int size, Bytes& out) {
  for (int i = 0; i < size; ++i) out.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
}

void append(const Bytes& bytes, Bytes& out) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

std::array<Samples, kMostChannels> planes_of(const SampleView& pixels) {
  std::array<Samples, kMostChannels> planes{};
  for (int y = 0; y < pixels.size.height; ++y) {
    for (int x = 0; x < pixels.size.width; ++x) {
      for (int c = 0; c < pixels.channels; ++c)
        planes[static_cast<std::size_t>(c)][static_cast<std::size_t>(y * kTileSide + x)] =
            number_at(pixels.row(y) + (x * pixels.channels + c) * pixels.bytes, pixels.bytes);
    }
  }
  return planes;
}

Bytes coded_tile(const SampleView& pixels, Transform transform) {
  const Depth depth{8 * pixels.bytes};
  std::array<Samples, kMostChannels> planes = planes_of(pixels);
  if (pixels.channels >= 3) apply(transform, depth, planes);
  const Book& book = book_of(TileKind::kCoded, pixels.bytes);
  std::array<std::uint32_t, kMostChannels> modes{}, origins{};
  for (std::size_t c = 0; c < kMostChannels; ++c) origins[c] = planes[c][0];
  Written written;
  for (int pair = 0; 2 * pair < pixels.size.height; ++pair) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(pixels.channels); ++c) {
      const Mode mode = write_best(book, planes[c], origins[c], depth, pair, pixels.size, written);
      modes[c] |= static_cast<std::uint32_t>(mode) << (2 * pair);
    }
  }
  Bytes tile{static_cast<std::uint8_t>(pixels.channels >= 3 ? static_cast<unsigned>(transform) << 2U : 0U)};
  for (std::size_t c = 0; c < static_cast<std::size_t>(pixels.channels); ++c) append(origins[c], pixels.bytes, tile);
  for (std::size_t c = 0; c < static_cast<std::size_t>(pixels.channels); ++c)
    append(modes[c], sizeof(std::uint32_t), tile);
  append(written.codes, tile);
  append(written.payload, tile);
  return tile;
}

// Samples of a pixel, which order colours that come equally often.
using Colour = std::array<std::uint32_t, kMostChannels>;

// nullopt: there are more than 256 colours.
std::optional<Bytes> few_tile(const SampleView& pixels) {
  const std::array<Samples, kMostChannels> planes = planes_of(pixels);
  const auto colour_at = [&](int x, int y) {
    Colour colour{};
    for (std::size_t c = 0; c < kMostChannels; ++c) colour[c] = planes[c][static_cast<std::size_t>(y * kTileSide + x)];
    return colour;
  };
  std::map<Colour, int> counts;
  for (int y = 0; y < pixels.size.height; ++y) {
    for (int x = 0; x < pixels.size.width; ++x) ++counts[colour_at(x, y)];
  }
  if (counts.size() > 256) return std::nullopt;
  std::vector<std::pair<int, Colour>> colours;  // the most frequent first, then by samples
  for (const auto& [colour, count] : counts) colours.emplace_back(-count, colour);
  std::sort(colours.begin(), colours.end());

  Bytes tile{static_cast<std::uint8_t>(TileKind::kFew), static_cast<std::uint8_t>(colours.size() - 1)};
  std::map<Colour, std::int32_t> numbers;
  for (const auto& [count, colour] : colours) {
    numbers.emplace(colour, static_cast<std::int32_t>(numbers.size()));
    for (std::size_t c = 0; c < static_cast<std::size_t>(pixels.channels); ++c) append(colour[c], pixels.bytes, tile);
  }
  if (colours.size() == 1) return tile;
  std::uint32_t modes = 0;
  Written written;
  for (int pair = 0; 2 * pair < pixels.size.height; ++pair) {
    std::array<std::int32_t, 2 * kTileSide> residuals{};
    for (int i = 0; i < 2 * kTileSide; ++i) {
      const int x = i % kTileSide, y = 2 * pair + i / kTileSide;
      if (x < pixels.size.width && y < pixels.size.height)
        residuals[static_cast<std::size_t>(i)] = numbers.at(colour_at(x, y));
    }
    if (std::all_of(residuals.begin(), residuals.end(), [](std::int32_t r) { return r == 0; })) continue;
    modes |= static_cast<std::uint32_t>(Mode::kSmooth) << (2 * pair);
    const Written now = write_pair(kBook8, residuals.data(), false);
    append(now.codes, written.codes);
    append(now.payload, written.payload);
  }
  append(modes, sizeof modes, tile);
  append(written.codes, tile);
  append(written.payload, tile);
  return tile;
}

Bytes raw_tile(const SampleView& pixels) {
  Bytes tile{static_cast<std::uint8_t>(TileKind::kRaw)};
  for (int y = 0; y < pixels.size.height; ++y) {
    for (int i = 0; i < pixels.size.width * pixels.channels; ++i)
      append(number_at(pixels.row(y) + i * pixels.bytes, pixels.bytes), pixels.bytes, tile);
  }
  return tile;
}

}  // namespace

TileFault decode_tile(const TileShape& shape, FileBytes tile_untrusted, std::uint8_t* out) {
  TileParts parts;
  if (const TileFault fault = split_tile(shape, tile_untrusted, parts); fault != TileFault::kNone) return fault;
  std::array<Samples, kMostChannels> planes{};
  switch (parts.kind) {
    case TileKind::kCoded:
      decode_coded(shape, parts, planes);
      break;
    case TileKind::kFew:
      decode_few(shape, parts, planes);
      break;
    case TileKind::kRaw:
      decode_raw(shape, parts, planes);
      break;
  }
  for (int i = 0; i < shape.channels * kTilePixels; ++i) {
    const std::uint32_t sample =
        planes[static_cast<std::size_t>(i / kTilePixels)][static_cast<std::size_t>(i % kTilePixels)];
    std::memcpy(out + i * shape.bytes, &sample, static_cast<std::size_t>(shape.bytes));
  }
  return TileFault::kNone;
}

void encode_tile(const SampleView& pixels, Effort effort, std::vector<std::uint8_t>& out) {
  std::optional<Bytes> best;
  const auto consider = [&](const std::optional<Bytes>& tile) {
    if (tile && (!best || tile->size() < best->size())) best = tile;
  };
  consider(coded_tile(pixels, Transform::kGreen));
  if (pixels.channels >= 3 && effort == Effort::kBest) {
    for (const Transform transform : {Transform::kNone, Transform::kGreenRed, Transform::kYcocg})
      consider(coded_tile(pixels, transform));
  }
  consider(few_tile(pixels));
  consider(raw_tile(pixels));
  append(*best, out);
}

}  // namespace millrace::kernels::l3::reference
