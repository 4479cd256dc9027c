// What a packed block's shape says of how its values lie (kernels/packed/README.md): a ROM of 256 lines. Immutable.
#pragma once

#include <cstdint>

namespace millrace {
namespace hls {

struct PackedShape {
  std::uint64_t widths;  // a byte a lane: bits of its values, 1..8; 16 where it is raw
  std::uint64_t starts;  // a byte a lane: bytes before it
  std::uint8_t bitmap_bytes;
  std::uint8_t wide;  // 0, 8 or 16: so many values have four bits more, behind the others
  bool aligned;       // values begin at a byte
  bool raw;           // values are words of 16 bits

  unsigned width(unsigned rank) const { return static_cast<unsigned>(widths >> (rank & 56)) & 255; }
  // Of a block's first `count` values, but for the wide ones' upper four. `count` <= 63.
  unsigned value_bits(unsigned count) const {
    if (raw) return 16 * count;
    return 8 * (static_cast<unsigned>(starts >> (count & 56)) & 255) + count % 8 * width(count);
  }
  // All of a block's bits.
  unsigned block_bits(unsigned count) const {
    const unsigned bits = value_bits(count);
    if (wide == 0) return bits;
    return (bits + 7) / 8 * 8 + (4 * (count < wide ? count : wide) + 7) / 8 * 8;
  }
};

const PackedShape& packed_shape(std::uint8_t number);

}  // namespace hls
}  // namespace millrace
