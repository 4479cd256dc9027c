// What K1 is given and how its threads divide the work. See tokenise.h.
#pragma once

#include <cstdint>

#include "kernels/cuda/batch.h"
#include "kernels/cuda/tokenise/decode_table.h"

namespace millrace::kernels::cuda {

// An image whose scan's beginning alone is known is decoded in windows of threads x regions x region_bytes bytes, as
// they are in the file: a thread has `regions` regions, one after the other.
struct TokeniseShape {
  std::uint32_t region_bytes = 32;  // a multiple of 4, 16..kMostRegionBytes
  std::uint32_t regions = 8;        // of a thread; threads x regions <= kMostRegions
  std::uint32_t most_rounds = 64;   // until streams that have not met make their image kNotInTime
};
inline constexpr int kUsualTokeniseThreads = 128;
// As GPUs run it: seven thread blocks of 32 KB are on a multiprocessor at once.
inline constexpr int kTokeniseThreads = kUsualTokeniseThreads;
inline constexpr int kTokeniseBlocks = 7;
inline constexpr int kMostRegions = 1024;
inline constexpr int kMostRegionBytes = 64;
inline constexpr int kMostTokeniseThreads = 512;

// Otherwise every image is kNotHere.
constexpr MILLRACE_HD bool is_possible(const TokeniseShape& shape, int threads) {
  return shape.region_bytes % 4 == 0 && shape.region_bytes >= 16 && shape.region_bytes <= kMostRegionBytes &&
         threads <= kMostTokeniseThreads && shape.regions >= 1 &&
         shape.regions <= kMostRegions / static_cast<std::uint32_t>(threads);
}

// A region's scratch: tokens from its beginning up, starts of blocks from its end down. No stream has more of them: a
// token of 2 bytes takes a bit at least, and a block (its start 4 bytes) one for its difference and one to end it, but
// for the last block, whose end may lie after.
constexpr MILLRACE_HD std::uint32_t slot_bytes(std::uint32_t region_bytes) {
  return 2 * 8 * region_bytes + 8;
}
// A thread block's scratch, in bytes: a multiple of 8.
constexpr MILLRACE_HD std::uint64_t scratch_bytes(const TokeniseShape& shape, int threads) {
  return std::uint64_t{slot_bytes(shape.region_bytes)} * shape.regions * static_cast<std::uint64_t>(threads);
}

// How much was decoded more than once.
struct TokeniseWork {
  std::uint32_t regions;  // of the windows that were decoded
  std::uint32_t decoded;  // times that one of them was
  std::uint32_t rounds;   // after the first
  std::uint32_t windows;
};

// Pointers into memory that the kernel may use. Every image's ranges are its own.
struct TokeniseArgs {
  const ImageJob* jobs;
  std::uint32_t images;
  const std::uint8_t* bytes;  // the batch's; aligned to 16
  const DecodeTable* tables;
  const Segment* segments;
  Token* tokens;  // aligned to 8; each image's first a multiple of 4
  BlockEntry* blocks;
  Status* statuses;           // an image each
  TokeniseWork* work;         // an image each, or null
  std::uint32_t* next_image;  // 0 before the launch
  unsigned char* scratch;     // scratch_bytes() for each thread block, aligned to 8
  TokeniseShape shape;
};

// Longer scans are kNotHere: positions of bits have 32 bits.
inline constexpr std::uint32_t kMostScanBytes = (1U << 29) - 64;

// Segments write their tokens to pieces of an image's range that their threads take as they go.
inline constexpr std::uint32_t kTokenPiece = 256;

// Tokens that are enough for whatever a scan of so many bytes holds. Photographs take a twentieth.
constexpr std::uint64_t most_tokens(std::uint64_t scan_bytes, std::uint64_t segments) {
  return segments == 0 ? 8 * scan_bytes + 4 : (8 * scan_bytes + segments * kTokenPiece) * 2;
}

}  // namespace millrace::kernels::cuda
