// A packed group's bytes, and one block of it to tokens. Internal to unpack.h.
#pragma once

#include <cstdint>

#include "kernels/cuda/unpack/unpack_args.h"

namespace millrace::kernels::cuda {

// A group in shared memory, as words; looks at eight bytes behind its last one, whatever they are.
struct GroupBytes {
  const std::uint32_t* words;
  int lead;  // bytes before the group's first

  // 32 bits from a bit of the group on.
  MILLRACE_HD std::uint32_t bits(int bit) const {
    const auto at = static_cast<unsigned>(8 * lead + bit);
    return word_at(words[at / 32], words[at / 32 + 1], at % 32);
  }
  // `width` of them as a number with a sign; 1..16.
  MILLRACE_HD int number(int bit, int width) const {
    return static_cast<std::int32_t>(bits(bit) << (32 - width)) >> (32 - width);
  }
  MILLRACE_HD std::uint64_t eight(int byte) const { return std::uint64_t{bits(8 * byte + 32)} << 32 | bits(8 * byte); }

  MILLRACE_HD int level() const { return number(0, 16); }
  MILLRACE_HD std::uint32_t shape(int block) const { return bits(8 * (kPackedGroupHead + block)) & 255; }
  // Of the differences before the block's own, the first of which is block 1's.
  MILLRACE_HD int difference_bits_before(int block) const {
    std::uint32_t widths = bits(16);
    int sum = 0;
    for (int left = block - 1; left > 0; left -= 8, widths >>= 4)
      sum += static_cast<int>(widths & 15) * (left < 8 ? left : 8);
    return sum;
  }
  // A block's DC less that of the block before; of the first one its DC.
  MILLRACE_HD int difference(int block, int blocks) const {
    if (block == 0) return level();
    const int width = static_cast<int>(bits(16) >> (block - 1) / 8 * 4 & 15);
    if (width == 0) return 0;
    return number(8 * (kPackedGroupHead + blocks) + difference_bits_before(block), width);
  }
  // The byte where values begin.
  MILLRACE_HD int values(int blocks) const {
    return kPackedGroupHead + blocks + (difference_bits_before(blocks) + 7) / 8;
  }
};

// A block's coefficients that are not 0, DC not among them: a bit each, in zig-zag order.
MILLRACE_HD inline std::uint64_t bitmap_at(const GroupBytes& group, int byte, int bytes) {
  if (bytes == 0) return 0;
  return (group.eight(byte) & ~std::uint64_t{0} >> (64 - 8 * bytes)) << 1;
}

MILLRACE_HD constexpr int next_byte(int bit) {
  return (bit + 7) & ~7;
}

// Bits of a block's first `count` values, but for the wide ones' upper four.
MILLRACE_HD inline int value_bits(const PackedShape& shape, int count) {
  if (shape.is_raw()) return 16 * count;
  const int lane = count / 8;
  const std::uint32_t before = shape.word & ((1U << 3 * lane) - 1);
  constexpr std::uint32_t kOnes = 011111111;
  const int sum =
      lane + count_ones(before & kOnes) + 2 * count_ones(before >> 1 & kOnes) + 4 * count_ones(before >> 2 & kOnes);
  return 8 * sum + (count % 8 == 0 ? 0 : count % 8 * shape.width(count));
}

// All of a block's bits among the values.
MILLRACE_HD inline int block_bits(const PackedShape& shape, int count) {
  const int bits = value_bits(shape, count), wide = shape.wide_values();
  return wide == 0 ? bits : next_byte(bits) + next_byte(4 * (count < wide ? count : wide));
}

// Room for a block's tokens: a multiple of 4, so that four are stored at once.
MILLRACE_HD inline int block_room(std::uint64_t bitmap) {
  if (bitmap == 0) return 0;
  const int count = count_ones(bitmap), zeros = highest_one(bitmap) - count;
  return (count + zeros / 16 + 3) / 4 * 4;
}

struct BlockTokens {
  int count;
  bool fit;  // all values have 12 bits at most
};

// There is no 0 among packed values.
MILLRACE_HD constexpr int with_zero(int value) {
  return value < 0 ? value : value + 1;
}

// The values of one block, one after the other.
class PackedValues {
 public:
  // `bit`: of the group, where they begin.
  MILLRACE_HD PackedValues(const GroupBytes& group, const PackedShape& shape, int bit, int count)
      : group_(group), shape_(shape), bit_(bit), wide_(shape.wide_values()) {
    if (wide_ != 0) upper_ = next_byte(bit + value_bits(shape, count));
  }

  MILLRACE_HD int take() {
    const int width = shape_.width(rank_), value = group_.number(bit_, width);
    bit_ += width;
    const int rank = rank_++;
    if (shape_.is_raw()) return value;
    if (rank < wide_) return with_zero(group_.number(upper_ + 4 * rank, 4) * 256 + (value & 255));
    return static_cast<std::int8_t>(with_zero(value));  // a stored 127, which no encoder makes, is what bytes give
  }

 private:
  const GroupBytes& group_;
  const PackedShape shape_;
  int bit_, rank_ = 0;
  const int wide_;
  int upper_ = 0;
};

// Tokens that go to memory four by four, the last ones with zeros behind them.
class TokensByFour {
 public:
  explicit MILLRACE_HD TokensByFour(Token* to) : to_(to) {}
  MILLRACE_HD void add(int token) {
    four_ = four_ >> 16 | std::uint64_t{static_cast<Token>(token)} << 48;
    if (++count_ % 4 == 0) store_aligned(to_ + count_ - 4, four_);
  }
  // Returns how many there are.
  MILLRACE_HD int finish() {
    const int rest = count_ % 4;
    if (rest != 0) store_aligned(to_ + (count_ - rest), four_ >> 16 * (4 - rest));
    return count_;
  }

 private:
  Token* const to_;
  std::uint64_t four_ = 0;
  int count_ = 0;
};

// REQUIRES: block_room() tokens, aligned to 8 bytes.
MILLRACE_HD inline BlockTokens put_tokens(PackedValues values, std::uint64_t bitmap, Token* tokens) {
  TokensByFour out(tokens);
  bool fit = true;
  int next = 1;
  MILLRACE_ROLLED for (std::uint64_t left = bitmap; left != 0; left &= left - 1) {
    const int position = lowest_one(left);
    int run = position - next;
    next = position + 1;
    MILLRACE_ROLLED for (; run > 15; run -= 16) out.add(kZeroRun);
    const int value = values.take();
    fit &= value >= -2048 && value <= 2047;
    out.add(run << 12 | (value & 0xfff));
  }
  return {out.finish(), fit};
}

}  // namespace millrace::kernels::cuda
