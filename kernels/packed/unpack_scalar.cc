// Unpacking as plain arithmetic, and the choice among all ways.
#include <bit>
#include <cstring>

#include "kernels/packed/layout.h"
#include "kernels/packed/shapes.h"
#include "kernels/packed/unpack.h"

namespace millrace::kernels::packed {
namespace {

// `width` bits with a sign, 0..16, of which the first is `bit` of `from`. Looks at four bytes.
int bits_at(const std::uint8_t* from, std::size_t bit, unsigned width) {
  if (width == 0) return 0;
  std::uint32_t word;
  std::memcpy(&word, from + bit / 8, sizeof word);
  return static_cast<std::int32_t>(word >> (bit % 8) << (32 - width)) >> (32 - width);
}

std::size_t next_byte(std::size_t bit) {
  return (bit + 7) & ~std::size_t{7};
}

// There is no 0 among the values.
std::int16_t with_zero(int value) {
  return static_cast<std::int16_t>(value < 0 ? value : value + 1);
}

// A group's parts, and how far they were read.
struct Reader {
  layout::Parts parts;
  const std::uint8_t* values;
  const std::uint8_t* bitmaps;  // below this
  int level;
  std::size_t dc_bit = 0, bit = 0;

  explicit Reader(const Group& group)
      : parts(layout::parts_of(group)), values(parts.values), bitmaps(group.end), level(parts.level) {}

  std::int16_t take_level(int block) {
    if (block > 0) {
      const unsigned width = std::uint32_t{parts.dc_widths} >> ((block - 1) / 8 * 4) & 15;
      level += bits_at(parts.differences, dc_bit, width);
      dc_bit += width;
    }
    return static_cast<std::int16_t>(level);
  }

  // A bit for each coefficient, of which DC's is 0.
  std::uint64_t take_bitmap(const Shape& shape) {
    bitmaps -= shape.bitmap_bytes;
    std::uint64_t bitmap = 0;
    std::memcpy(&bitmap, bitmaps, shape.bitmap_bytes);
    return bitmap << 1;
  }

  void take_block(int block, std::int16_t* out) {
    const Shape& shape = kShapes[parts.shapes[block]];
    std::memset(out, 0, jpeg::kCoefficients * sizeof *out);
    out[0] = take_level(block);
    const std::uint64_t bitmap = take_bitmap(shape);
    bit = (bit + shape.align) & ~std::size_t{shape.align};
    if (shape.raw != 0) {
      for (std::uint64_t left = bitmap; left != 0; left &= left - 1, bit += 16)
        std::memcpy(out + std::countr_zero(left), values + bit / 8, sizeof *out);
    } else if (shape.nibbles != 0) {
      take_wide(shape, bitmap, out);
    } else {
      int rank = 0;
      for (std::uint64_t left = bitmap; left != 0; left &= left - 1, ++rank)
        out[std::countr_zero(left)] = byte_with_zero(take_value(shape, rank));
    }
  }

  int take_value(const Shape& shape, int rank) {
    const auto width = static_cast<unsigned>(shape.widths >> (rank & 56) & 255);
    const int value = bits_at(values, bit, width);
    bit += width;
    return value;
  }
  // A stored 127 does not occur; it gives what bytes give.
  static std::int16_t byte_with_zero(int value) { return static_cast<std::int8_t>(with_zero(value)); }

  void take_wide(const Shape& shape, std::uint64_t bitmap, std::int16_t* out) {
    int low[jpeg::kCoefficients];
    const int count = std::popcount(bitmap);
    for (int rank = 0; rank < count; ++rank) low[rank] = take_value(shape, rank);
    bit = next_byte(bit);
    int rank = 0;
    for (std::uint64_t left = bitmap; left != 0; left &= left - 1, ++rank) {
      std::int16_t& value = out[std::countr_zero(left)];
      if (rank >= static_cast<int>(shape.nibbles)) {
        value = byte_with_zero(low[rank]);
        continue;
      }
      value = with_zero(bits_at(values, bit, 4) * 256 + (low[rank] & 255));
      bit += 4;
    }
    bit = next_byte(bit);
  }
};

void unpack(const Group& group, int first, int count, std::int16_t* out) {
  Reader reader(group);
  alignas(64) std::int16_t skipped[jpeg::kCoefficients];
  for (int block = 0; block < first; ++block) reader.take_block(block, skipped);
  for (int block = first; block < first + count; ++block, out += jpeg::kCoefficients) reader.take_block(block, out);
}

}  // namespace

const Unpacker& scalar_unpacker() {
  static constexpr Unpacker kUnpacker{unpack};
  return kUnpacker;
}

bool has_unpacking_vectors() {
#if defined(__x86_64__)
  static const bool all = is_available(Target::kAvx512) && __builtin_cpu_supports("gfni") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd");
  return all;
#else
  return false;
#endif
}

const Unpacker& unpacker(Target target) {
#if defined(__x86_64__)
  if (target == Target::kAvx512 && has_unpacking_vectors()) return avx512_unpacker();
  if (target != Target::kScalar) return avx2_unpacker();
#endif
  static_cast<void>(target);
  return scalar_unpacker();
}

}  // namespace millrace::kernels::packed
