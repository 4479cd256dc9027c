// From samples to a file of L3 version 2. Lossless, and all targets write the same bytes: README.md says which.
// Thread-safe: plain functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/target.h"
#include "kernels/l3/samples.h"
#include "kernels/l3/tile.h"

namespace millrace::kernels::l3 {

enum class Effort : std::uint8_t {
  kFast,  // of colour transforms the first alone
  kBest,  // of all transforms the shortest, tile by tile
};

// Bytes are borrowed.
struct Picture {
  SampleView samples;   // of a palette the numbers
  int orientation = 1;  // 1 ... 8, as EXIF has it
  FileBytes palette{};  // red, green, blue, and alpha with colour_bytes = 4; empty: there is none
  int colour_bytes = 0;
  FileBytes exif{}, icc{}, xmp{};
};

// Empty: `out` is the file. Otherwise what it cannot hold, for a sentence: "a side of more than 1048576 pixels". REQUIRES:
// is_available(target).
std::string encode(const Picture& picture, Effort effort, Target target, std::vector<std::uint8_t>& out);

// Appends one tile of at most 32 x 32 pixels.
using TileEncoder = void (*)(const SampleView& pixels, Effort effort, std::vector<std::uint8_t>& out);
TileEncoder tile_encoder(Target target);

}  // namespace millrace::kernels::l3
