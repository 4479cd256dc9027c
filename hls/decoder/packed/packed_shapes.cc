#include "hls/decoder/packed/packed_shapes.h"

namespace millrace {
namespace hls {
namespace {

constexpr int kShapes = 256, kRaw = 255, kLanesOfShape = 8, kWideWidth = 9;

struct Line {
  int bitmap_bytes;
  int widths[kLanesOfShape];
};
// clang-format off
constexpr Line kLines[kRaw] = {
#include "hls/decoder/packed/packed_shapes.inc"
};
// clang-format on

struct Rom {
  PackedShape at[kShapes];
};

constexpr PackedShape shape_of(const Line& line) {
  PackedShape shape = {};
  std::uint64_t start = 0;
  for (int lane = 0; lane < kLanesOfShape; ++lane) {
    const int bits = line.widths[lane] == kWideWidth ? 8 : line.widths[lane];
    shape.widths |= static_cast<std::uint64_t>(bits) << (8 * lane);
    shape.starts |= start << (8 * lane);
    start += static_cast<std::uint64_t>(bits);
    if (bits == 8) shape.aligned = true;
    if (line.widths[lane] == kWideWidth) shape.wide = static_cast<std::uint8_t>(8 * (lane + 1));
  }
  shape.bitmap_bytes = static_cast<std::uint8_t>(line.bitmap_bytes);
  return shape;
}

constexpr Rom make_rom() {
  Rom rom = {};
  for (int i = 0; i < kRaw; ++i) rom.at[i] = shape_of(kLines[i]);
  rom.at[kRaw] = {0x1010101010101010ULL, 0, 8, 0, true, true};
  return rom;
}

constexpr Rom kRom = make_rom();

}  // namespace

const PackedShape& packed_shape(std::uint8_t number) {
  return kRom.at[number];
}

}  // namespace hls
}  // namespace millrace
