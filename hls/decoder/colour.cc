#include "hls/decoder/colour.h"

namespace millrace {
namespace hls {
namespace {

std::uint8_t sample_byte(int value) {
  return static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

// 16 fractional bits: 1.402, 0.344136286, 0.714136286, 1.772.
Group to_rgb(const Group& in) {
  Group out;
  constexpr int kHalf = 1 << 15;
  for (int i = 0; i < kGroup; ++i) {
#pragma HLS UNROLL
    const int y = in.plane[0][i], cb = in.plane[1][i] - 128, cr = in.plane[2][i] - 128;
    out.plane[0][i] = sample_byte(y + ((91881 * cr + kHalf) >> 16));
    out.plane[1][i] = sample_byte(y + ((-22554 * cb - 46802 * cr + kHalf) >> 16));
    out.plane[2][i] = sample_byte(y + ((116130 * cb + kHalf) >> 16));
  }
  return out;
}

}  // namespace

bool Colour::step(GroupFifo& groups, GroupFifo& pixels) {
  bool moved = false;
  while (!groups.empty() && !pixels.full()) {
#pragma HLS PIPELINE II = 1
    const Group in = groups.read();
    pixels.write(is_grey_ ? in : to_rgb(in));
    moved = true;
  }
  return moved;
}

}  // namespace hls
}  // namespace millrace
