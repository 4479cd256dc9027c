// Packing as plain arithmetic, what all ways share, and the choice among them.
#include <algorithm>
#include <bit>
#include <cstdlib>

#include "kernels/jpeg/ordinary.h"
#include "kernels/packed/pack_group.h"
#include "kernels/packed/shapes.h"
#include "kernels/packed/unpack.h"

namespace millrace::kernels::packed {
namespace {

constexpr unsigned kTooWide = 16;

// There is no 0 among the values: 1 is stored as 0.
int without_zero(int value) {
  return value > 0 ? value - 1 : value;
}

// Bits of a number in two's complement.
unsigned width_of(int number) {
  return 1 + static_cast<unsigned>(std::bit_width(static_cast<unsigned>(number < 0 ? ~number : number)));
}

// The width that a lane needs for a value that is not 0. Bytes do without their two ends: 127 is stored for 128, which a
// byte does not hold when it is taken out again, and vectors look at magnitudes.
unsigned needed_width(int value) {
  const int stored = without_zero(value);
  if (stored > -128 && stored < 127) return width_of(stored);
  return width_of(stored) <= 12 ? kWideWidth : kTooWide;
}

std::uint64_t low_bits(int value, unsigned bits) {
  return static_cast<std::uint64_t>(value) & ((std::uint64_t{1} << bits) - 1);
}

struct Values {
  int at[jpeg::kCoefficients];
  int count = 0;
};

Values take_values(const std::int16_t* block, std::uint64_t bitmap) {
  Values values;
  for (; bitmap != 0; bitmap &= bitmap - 1) values.at[values.count++] = block[std::countr_zero(bitmap)];
  return values;
}

int choose_shape(const Values& values, std::uint64_t bitmap, ShapeChooser& chooser) {
  unsigned widths[kLanes] = {};
  for (int rank = 0; rank < values.count; ++rank) {
    const unsigned width = needed_width(values.at[rank]);
    if (width > (rank < 16 ? kWideWidth : 8)) return kRawShape;
    widths[rank / 8] = std::max(widths[rank / 8], width);
  }
  if (widths[1] == kWideWidth) widths[0] = kWideWidth;
  Need need{.bitmap_bytes = bitmap_bytes(bitmap), .values = static_cast<unsigned>(values.count)};
  for (int lane = 0; lane < kLanes; ++lane) need.widths |= widths[lane] << (4 * lane);
  return chooser.choose(need);
}

bool is_allowed(const std::int16_t* block, const Limits& limits) {
  for (std::size_t i = 0; i < jpeg::kCoefficients; ++i) {
    if (std::abs(int{block[i]}) > limits.harmless[i]) return jpeg::is_ordinary(block, limits.quant);
  }
  return true;
}

}  // namespace

// Ordinary levels are within 2,944, so no difference takes more than 14 bits.
void put_differences(const Blocks& blocks, std::uint8_t* head, BitWriter& out) {
  std::uint32_t widths = 0;
  for (int i = 1; i < blocks.count; ++i) {
    const int difference = blocks.at[i][0] - blocks.at[i - 1][0];
    const unsigned shift = static_cast<unsigned>(i - 1) / 8 * 4, width = difference == 0 ? 0 : width_of(difference);
    if (width > (widths >> shift & 15)) widths = (widths & ~(15U << shift)) | width << shift;
  }
  std::memcpy(head, blocks.at[0], 2);
  std::memcpy(head + 2, &widths, 2);
  for (int i = 1; i < blocks.count; ++i) {
    const unsigned width = widths >> ((i - 1) / 8 * 4) & 15;
    out.put(low_bits(blocks.at[i][0] - blocks.at[i - 1][0], width), width);
  }
  out.align();
}

std::uint8_t pack_values(const std::int16_t* block, std::uint64_t bitmap, ShapeChooser& chooser, BitWriter& out) {
  const Values values = take_values(block, bitmap);
  const int id = choose_shape(values, bitmap, chooser);
  const Shape& shape = kShapes[static_cast<std::size_t>(id)];
  if (shape.align != 0) out.align();
  for (int rank = 0; rank < values.count; ++rank) {
    const auto width = static_cast<unsigned>(shape.widths >> (rank & 56) & 255);
    if (shape.raw != 0)
      out.put(low_bits(values.at[rank], 16), 16);
    else
      out.put(low_bits(without_zero(values.at[rank]), width), width);
  }
  if (shape.nibbles != 0) {
    out.align();
    for (int rank = 0; rank < std::min(values.count, static_cast<int>(shape.nibbles)); ++rank)
      out.put(low_bits(without_zero(values.at[rank]) >> 8, 4), 4);
    out.align();
  }
  return static_cast<std::uint8_t>(id);
}

std::uint8_t* put_bitmaps(const std::uint64_t* bitmaps, const std::uint8_t* shapes, int count, std::uint8_t* out) {
  for (int i = count - 1; i >= 0; --i) {
    const std::uint64_t bitmap = bitmaps[i] >> 1;
    std::memcpy(out, &bitmap, sizeof bitmap);
    out += kShapes[shapes[i]].bitmap_bytes;
  }
  return out;
}

std::size_t pack_group_scalar(const Blocks& blocks, const Limits& limits, ShapeChooser& chooser, std::uint8_t* out) {
  for (int i = 0; i < blocks.count; ++i) {
    if (!is_allowed(blocks.at[i], limits)) return 0;
  }
  std::uint8_t* const shapes = out + layout::kGroupHeadBytes;
  BitWriter bits(shapes + blocks.count);
  put_differences(blocks, out, bits);
  std::uint64_t bitmaps[kGroupBlocks];
  for (int i = 0; i < blocks.count; ++i) {
    bitmaps[i] = 0;
    for (int at = 1; at < jpeg::kCoefficients; ++at)
      bitmaps[i] |= static_cast<std::uint64_t>(blocks.at[i][at] != 0) << at;
    shapes[i] = pack_values(blocks.at[i], bitmaps[i], chooser, bits);
  }
  bits.align();
  return static_cast<std::size_t>(put_bitmaps(bitmaps, shapes, blocks.count, bits.end()) - out);
}

PackGroup group_packer(Target target) {
#if defined(__x86_64__)
  if (target == Target::kAvx512 && has_unpacking_vectors()) return pack_group_avx512;
  if (target != Target::kScalar) return pack_group_avx2;
#endif
  static_cast<void>(target);
  return pack_group_scalar;
}

}  // namespace millrace::kernels::packed
