// A tile of L3 version 2, as it lies in a file (README.md, "Tiles"): 32 x 32 pixels, fewer at the right and lower side of
// a picture. Its parts are found here, and all that can be wrong with a tile is found with them; so every decoder refuses
// the same tiles. Thread-safe: values, and plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/l3/book.h"

namespace millrace::kernels::l3 {

using FileBytes = std::span<const std::uint8_t>;

inline constexpr int kTileSide = 32;
inline constexpr int kTilePixels = kTileSide * kTileSide;
inline constexpr int kRowPairs = kTileSide / 2;
inline constexpr int kCodesOfPair = kTileSide / 8;  // of a row pair and channel
inline constexpr int kMostChannels = 4;

// What a tile's bytes do not say.
struct TileShape {
  int channels = 0;           // 1 ... kMostChannels
  int bytes = 0;              // of a sample: 1 or 2
  int width = 0, height = 0;  // pixels that are in the picture: 1 ... kTileSide

  int row_pairs() const { return (height + 1) / 2; }  // that are in the picture
  int pixel_bytes() const { return channels * bytes; }
  friend bool operator==(const TileShape&, const TileShape&) = default;
};

enum class TileKind : std::uint8_t { kCoded = 0, kFew = 1, kRaw = 2 };
enum class Transform : std::uint8_t { kGreen = 0, kNone = 1, kGreenRed = 2, kYcocg = 3 };
enum class Mode : std::uint8_t { kZero = 0, kSmooth = 1, kLeft = 2, kGradient = 3 };

// The mode of a row pair, out of a channel's 32 bits.
constexpr Mode mode_of(std::uint32_t modes, int pair) {
  return static_cast<Mode>(modes >> (2 * pair) & 3U);
}

enum class TileFault : std::uint8_t { kNone, kKind, kMode, kCode, kLength };
// For a sentence that begins with the tile: "has a code that the book does not have".
const char* text_of(TileFault fault);

// Of a tile that is not at fault. Its bytes are borrowed.
struct TileParts {
  TileKind kind = TileKind::kCoded;
  Transform transform = Transform::kGreen;  // of a coded tile of three channels or more; without meaning otherwise
  const std::uint8_t* origins = nullptr;    // of a coded tile: a sample for each channel
  int colours = 0;                          // of a tile of few colours: 1 ... 256
  const std::uint8_t* palette = nullptr;    // their samples
  int coded_channels = 0;  // with modes and codes: as the shape says, 1 of few colours, 0 of a raw tile
  std::uint32_t modes[kMostChannels] = {};
  const std::uint8_t* codes = nullptr;
  int code_count = 0;
  const std::uint8_t* payload = nullptr;  // of a raw tile: the pixels
};

// `parts` means nothing if there is a fault. Which fault is told of several: the first in the order of TileFault.
TileFault split_tile(const TileShape& shape, FileBytes tile_untrusted, TileParts& parts);

// The book of a tile's codes.
constexpr const Book& book_of(TileKind kind, int sample_bytes) {
  return kind == TileKind::kCoded && sample_bytes == 2 ? kBook16 : kBook8;
}

}  // namespace millrace::kernels::l3
