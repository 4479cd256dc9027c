// Packed images to tokens, in place of entropy decoding: a group of up to 32 blocks comes whole into a memory of its own,
// eight bytes a clock, because its bitmaps lie backwards from its end; then a value a clock leaves.
//
//   sizes ──┐
//   groups ─┴─▶ group memory ─▶ shape, bitmap ─▶ values ─▶ tokens; a verdict behind an image's last one
//
// What is not as the grammar has it (kernels/packed/README.md) ends an image: behind it come blocks of nothing, as many
// as the picture has. Thread-bound(the kernel's caller).
#pragma once

#include "hls/decoder/jpeg/byte_stream.h"
#include "hls/decoder/jpeg/huffman.h"
#include "hls/decoder/packed/packed_head.h"
#include "hls/decoder/packed/packed_shapes.h"

namespace millrace {
namespace hls {

// The quantisation tables of a packed image to the dequantiser.
class PackedTableFeed {
 public:
  void start(const Job& job) {
    at_ = job.image.source + kPackedHead;
    left_ = job.packed_tables * (kPackedTable / kBurstBytes);
    sent_ = 0;
    is_sound_ = true;
  }
  bool step(const ReadPort& encoded, SetupFifo& setup);
  // All that were sent so far have no factor that is 0.
  bool is_sound() const { return is_sound_; }

 private:
  std::uint32_t at_ = 0, left_ = 0, sent_ = 0;  // words
  bool is_sound_ = true;
};

// The bytes of one group.
class GroupMemory {
 public:
  static constexpr std::uint32_t kHead = 4;  // level, widths of differences
  // kernels/packed/layout.h adds it up.
  static constexpr std::uint32_t kMostBytes = kHead + 32 + 59 + (32 * 1015 + 7) / 8 + 32 * 8;

  void put(std::uint32_t word, std::uint64_t bytes) { words_[word % kWords] = bytes; }

  // 32 bits from a bit on, the first one lowest; those behind the group may be anything.
  std::uint32_t bits(std::uint32_t bit) const {
    const std::uint64_t low = words_[bit / 64 % kWords], high = words_[(bit / 64 + 1) % kWords];
    return static_cast<std::uint32_t>(bit % 64 == 0 ? low : low >> bit % 64 | high << (64 - bit % 64));
  }
  // With a sign; `width` 1..16.
  int number(std::uint32_t bit, unsigned width) const {
    return static_cast<std::int32_t>(bits(bit) << (32 - width)) >> (32 - width);
  }
  std::uint8_t byte(std::uint32_t at) const { return static_cast<std::uint8_t>(bits(8 * at)); }

 private:
  static constexpr std::uint32_t kWords = 1024;
  static_assert(kMostBytes / 8 + 2 <= kWords, "no group is larger");

  std::uint64_t words_[kWords] = {};
};

class GroupUnpacker {
 public:
  void start(const Job& job);
  bool step(BurstFifo& sizes, BurstFifo& groups, TokenFifo& tokens, VerdictFifo& verdicts);

 private:
  enum class State : std::uint8_t { kIdle, kSize, kLoad, kBlock, kValues, kPad, kTell };

  bool take_size(BurstFifo& sizes);
  bool load(BurstFifo& groups);
  void begin_group();
  bool begin_block(TokenFifo& tokens);
  bool give_values(TokenFifo& tokens);
  int take_value();
  void leave_block();
  bool pad(TokenFifo& tokens);
  void fail(Reason reason);

  Job job_ = {};
  State state_ = State::kIdle;
  ByteStream sizes_, bytes_;
  GroupMemory group_;
  BlockWalk walk_;
  std::uint32_t left_ = 0;  // bytes of the image behind the group at hand
  std::uint32_t size_ = 0, loaded_ = 0;
  std::uint32_t blocks_ = 0, block_ = 0;  // of the group
  std::uint32_t blocks_left_ = 0;         // of the picture
  int level_ = 0;
  std::uint32_t widths_ = 0;      // of differences, a nibble each
  std::uint32_t difference_ = 0;  // bit of the next one
  std::uint32_t bit_ = 0;         // where the next value begins
  std::uint32_t bitmaps_ = 0;     // byte below which the next bitmap lies
  PackedShape shape_ = {};
  std::uint64_t bitmap_ = 0;  // of the values that are left: a bit each, in zig-zag order
  unsigned rank_ = 0;         // of the next value
  std::uint32_t upper_ = 0,
                after_ = 0;  // bits: the wide values' upper four, and where the next block's values may begin
  ScanVerdict verdict_ = {};
};

}  // namespace hls
}  // namespace millrace
