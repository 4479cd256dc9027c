// What the unpacking of packed images (kernels/packed) is given. See unpack.h. Plain values, laid out alike on host and
// device.
#pragma once

#include <cstdint>

#include "kernels/cuda/batch.h"
#include "kernels/cuda/host_device.h"

namespace millrace::kernels::cuda {

// A thread a block.
inline constexpr int kUnpackThreads = 32;
inline constexpr int kUnpackBlocks = 32;       // on a multiprocessor at once
inline constexpr int kPackedGroupHead = 4;     // bytes, before the shapes
inline constexpr int kMostPackedGroup = 4411;  // bytes; larger ones are refused before launch

// Blocks side by side of one component. Those that the crop meets are unpacked.
struct PackedGroup {
  std::uint64_t bytes;        // where it begins in the batch's encoded bytes: not in the first three
  std::uint32_t image;        // in the batch's jobs
  std::uint32_t first_token;  // from the image's first; a multiple of 4, and token_room() of them are the group's
  std::uint32_t first_entry;  // from the image's first block entry
  std::uint16_t byte_count;   // kPackedGroupHead + blocks at least, kMostPackedGroup at most
  std::uint8_t blocks;        // 1..kUnpackThreads
  std::uint8_t across;        // its component's blocks side by side in an MCU: 1 or 2
};
static_assert(sizeof(PackedGroup) == 24);

// How a block is packed, in one word: what kernels/packed/shapes.h says.
struct PackedShape {
  std::uint32_t word;  // bits 0-23: a lane's width less one, three bits each

  static constexpr int kBitmapShift = 24;  // 4 bits
  static constexpr int kWideShift = 28;    // 2 bits: lanes whose values have four bits more
  static constexpr std::uint32_t kRaw = 1U << 30, kAligned = 1U << 31;

  MILLRACE_HD int bitmap_bytes() const { return static_cast<int>(word >> kBitmapShift & 15); }
  MILLRACE_HD int wide_values() const { return static_cast<int>(word >> kWideShift & 3) * 8; }
  MILLRACE_HD bool is_raw() const { return (word & kRaw) != 0; }
  MILLRACE_HD bool is_aligned() const { return (word & kAligned) != 0; }
  MILLRACE_HD int width(int rank) const { return is_raw() ? 16 : static_cast<int>(word >> 3 * (rank / 8) & 7) + 1; }
};
static_assert(sizeof(PackedShape) == 4);
inline constexpr int kPackedShapes = 256;

// Tokens that a group's range has room for: each value takes a bit of the bitmaps and one of the values at least, a run
// of 16 zeros two bytes of bitmap; and each block's tokens begin at a multiple of 4.
MILLRACE_HD constexpr std::uint32_t token_room(int group_bytes, int blocks) {
  const int by_bytes = 4 * (group_bytes - kPackedGroupHead - blocks) + 3 * blocks, by_blocks = 64 * blocks;
  return static_cast<std::uint32_t>(((by_bytes < by_blocks ? by_bytes : by_blocks) + 3) / 4 * 4);
}

// Pointers into memory that the kernel may use. Every group's ranges are its own.
struct UnpackArgs {
  const PackedGroup* groups;
  const ImageJob* jobs;
  const std::uint8_t* bytes;  // the batch's; aligned to 4
  const PackedShape* shapes;  // kPackedShapes
  Token* tokens;              // aligned to 8; each image's first a multiple of 4
  BlockEntry* blocks;
  Status* statuses;  // an image each: kDone before the launch
};

}  // namespace millrace::kernels::cuda
