// What travels in the FIFOs between a decoder's stages. Values without constructors.
#pragma once

#include <cstdint>

#include "hls/decoder/job.h"
#include "hls/wire/words.h"

namespace millrace {
namespace hls {

// Of a scan without its stuffing: up to four bytes of data, the first one at the top, or what ends them.
struct Piece {
  std::uint32_t data;
  std::uint8_t bytes;   // 1..4; 0: a marker, or the end
  std::uint8_t marker;  // its code; 0: the bytes ended without one
};
constexpr std::uint8_t kEndOfImage = 0xd9, kFirstRestart = 0xd0;
inline bool is_restart(std::uint8_t marker) {
  return (marker & 0xf8) == kFirstRestart;
}

// A coefficient of the block at hand. The last of a block says so; a value of 0 changes nothing.
struct Token {
  std::int16_t value;  // of DC: the level, not the difference
  std::uint8_t at;     // in zig-zag order
  std::uint8_t last;
};

// Eight dequantised coefficients, a column of a block; then eight samples, a row of it, the first one lowest.
struct Column {
  std::int16_t at[kBlockSide];
};
using SampleRow = std::uint64_t;

// Eight pixels of a row. Luma and chroma, or red, green and blue; of grey pictures the first plane counts alone.
struct Group {
  std::uint8_t plane[3][kGroup];
};

// What the entropy decoder says of an image when all of its blocks have gone on.
struct ScanVerdict {
  Reason reason;
  std::uint32_t symbols, blocks;
};

}  // namespace hls
}  // namespace millrace
