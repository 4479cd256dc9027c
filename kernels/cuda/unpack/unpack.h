// Packed images (kernels/packed) to tokens and block entries (batch.h), a warp a group of up to 32 blocks:
//
//   group ─▶ shared memory ─▶ a thread a block: shape, difference ─▶ sums: bitmaps, levels ─▶ bitmap, bits, tokens
//                                                      ─▶ sums: tokens; bits of the blocks before ─▶ tokens, an entry
//
// No group waits for another one, and nothing has to be found: every block's place follows from the shapes and bitmaps
// of its group. What K2 gets is what kernels/packed unpacks, coefficient by coefficient.
//
// Groups are hostile. One whose bitmaps reach into its values, or with a value beyond 12 bits, makes its image kNotHere;
// others give what they say. Nothing is read outside a group and the three bytes before it, and nothing written outside
// its ranges.
#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/unpack/packed_block.h"

namespace millrace::kernels::cuda {

struct UnpackShared {
  // The group, from the aligned word on in which it begins, and what a look at its last bytes takes.
  std::uint32_t words[(3 + kMostPackedGroup + 3) / 4 + 2];
  std::uint32_t sizes[kUnpackThreads];  // bits of a block's values, and PackedShape::kAligned
};

// What a thread knows of its block.
struct UnpackWork {
  PackedShape shape;
  int difference, bits;
  std::uint64_t bitmap;
};

namespace unpacking {

// The group's bytes as they lie in words.
MILLRACE_HD inline void load_group(const std::uint8_t* bytes, const PackedGroup& group, std::uint32_t* words,
                                   int thread) {
  const int lead = static_cast<int>(group.bytes % 4), end = lead + group.byte_count;
  const std::uint8_t* const from = bytes + (group.bytes - static_cast<std::uint64_t>(lead));
  for (int at = 4 * thread; at < end; at += 4 * kUnpackThreads) {
    std::uint32_t word = 0;
    if (at + 4 <= end) {
      word = load_aligned<std::uint32_t>(from + at);
    } else {
      MILLRACE_ROLLED for (int i = 0; at + i < end; ++i) word |= std::uint32_t{from[at + i]} << (8 * i);
    }
    words[at / 4] = word;
  }
}

// Where a block's values begin, in bits from where those of the first one do.
MILLRACE_HD inline int first_bit(const std::uint32_t* sizes, int block) {
  int bit = 0;
  for (int i = 0; i <= block; ++i) {
    const std::uint32_t size = sizes[i];
    if ((size & PackedShape::kAligned) != 0) bit = next_byte(bit);
    if (i < block) bit += static_cast<int>(size & ~PackedShape::kAligned);
  }
  return bit;
}

// False: not here.
template <class Block>
MILLRACE_KERNEL bool unpack_group(Block& block, const UnpackArgs& args, const PackedGroup& group) {
  auto& shared = block.template shared<UnpackShared>();
  auto work = block.template per_thread<UnpackWork>();
  auto bitmap = block.template per_thread<int>(), level = block.template per_thread<int>(),
       token = block.template per_thread<int>();
  auto bad = block.template per_thread<bool>();
  const GroupBytes bytes{shared.words, static_cast<int>(group.bytes % 4)};
  block.each([&](int i) { load_group(args.bytes, group, shared.words, i); });
  block.each([&](int i) {
    const bool is_there = i < group.blocks;
    work[i].shape = is_there ? args.shapes[bytes.shape(i)] : PackedShape{0};
    work[i].difference = level[i] = is_there ? bytes.difference(i, group.blocks) : 0;
    bitmap[i] = work[i].shape.bitmap_bytes();
  });
  const int bitmaps = group.byte_count - block.exclusive_sum(bitmap), values = bytes.values(group.blocks);
  if (bitmaps < values) return false;
  block.exclusive_sum(level);
  block.each([&](int i) {
    const int of_block = work[i].shape.bitmap_bytes();
    work[i].bitmap = bitmap_at(bytes, group.byte_count - bitmap[i] - of_block, of_block);
    work[i].bits = block_bits(work[i].shape, count_ones(work[i].bitmap));
    shared.sizes[i] = static_cast<std::uint32_t>(work[i].bits) | (work[i].shape.word & PackedShape::kAligned);
    token[i] = block_room(work[i].bitmap);
  });
  const auto tokens = static_cast<std::uint32_t>(block.exclusive_sum(token));
  if (tokens > token_room(group.byte_count, group.blocks)) return false;
  block.each([&](int i) {
    bad[i] = false;
    if (i >= group.blocks) return;
    const int bit = 8 * values + first_bit(shared.sizes, i);
    bad[i] = bit + work[i].bits > 8 * bitmaps;
    if (bad[i]) return;
    const ImageJob& job = args.jobs[group.image];
    const std::uint32_t first = group.first_token + static_cast<std::uint32_t>(token[i]);
    const PackedValues packed(bytes, work[i].shape, bit, count_ones(work[i].bitmap));
    const BlockTokens made = put_tokens(packed, work[i].bitmap, args.tokens + job.first_token + first);
    bad[i] = !made.fit;
    const int entry = i / group.across * job.blocks_in_mcu + i % group.across;
    args.blocks[job.first_block + group.first_entry + static_cast<std::uint32_t>(entry)] = {
        first, static_cast<std::int16_t>(level[i] + work[i].difference), static_cast<std::uint16_t>(made.count)};
  });
  return !block.any(bad);
}

}  // namespace unpacking

// The kernel: block i unpacks args.groups[i]. REQUIRES: kUnpackThreads.
template <class Block>
MILLRACE_KERNEL void unpack(Block& block, const UnpackArgs& args) {
  const PackedGroup group = args.groups[block.index()];
  const bool is_done = unpacking::unpack_group(block, args, group);
  block.each([&](int i) {
    if (i == 0 && !is_done) Block::store(args.statuses + group.image, Status::kNotHere);
  });
}

}  // namespace millrace::kernels::cuda
