// Tokens to samples: the blocks of one MCU row, as far as a tile depends on them, kBlocksAtOnce at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/block.h"
#include "kernels/cuda/reconstruct/colour.h"
#include "kernels/cuda/reconstruct/inverse_dct.h"
#include "kernels/cuda/reconstruct/tile.h"

namespace millrace::kernels::cuda {

// One of kTileThreads. `lane` and `warp` say the same: warps take rows, lanes columns.
struct Thread {
  int index;
  MILLRACE_HD int warp() const { return index / kWarp; }
  MILLRACE_HD int lane() const { return index % kWarp; }
};
inline constexpr int kWarps = kTileThreads / kWarp;

// What a thread block works on: its tile, and its shared memory.
struct TileWork {
  const ReconstructArgs& args;
  const ImageJob& job;
  const Shape& shape;
  std::byte* memory;

  template <class T>
  MILLRACE_HD T* at(int offset) const {
    return reinterpret_cast<T*>(memory + offset);
  }
};

struct alignas(8) EightSamples {
  std::uint32_t words[2];
};
MILLRACE_HD constexpr std::uint32_t packed(const std::int32_t* samples) {
  return packed(samples[0], samples[1], samples[2]) | static_cast<std::uint32_t>(samples[3]) << 24;
}

struct alignas(16) Coefficients {
  std::int16_t at[8];
};

// So many bytes that one access reads or writes them.
template <int kBytes>
struct alignas(kBytes) Bytes {
  std::uint8_t at[kBytes];
};

// Position in zig-zag order to position in natural order (T.81 figure A.6).
MILLRACE_HD inline int natural_position(int zig_zag) {
  constexpr std::uint8_t kPositions[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                           12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                           35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                           58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};
  return kPositions[zig_zag];
}

// Factors in zig-zag order with where their coefficients go, so that a token needs one look-up. The last takes what
// would go beyond the block.
inline constexpr int kBeyond = 70;
MILLRACE_HD inline void load_quants(const TileWork& work, Thread thread) {
  std::uint32_t* const quants = work.at<std::uint32_t>(work.shape.quants);
  for (int i = thread.index; i < kQuantEntries * work.shape.components; i += kTileThreads) {
    const int component = i / kQuantEntries, position = i % kQuantEntries;
    const int natural = position < 64 ? natural_position(position) : kBeyond;
    const std::uint16_t* const factors = work.args.quants + 64 * work.job.component[component].quant;
    const std::uint32_t factor = position < 64 ? factors[natural] : 0;
    quants[i] = factor << 8 | static_cast<std::uint32_t>(natural);
  }
}

// Behind a block's 64 coefficients.
struct alignas(8) BlockNote {
  int at, pitch;  // where its samples go: offset in shared memory
};
inline constexpr int kCoefficientBytes = 128;
static_assert(kCoefficientBytes + sizeof(BlockNote) <= 2 * kBeyond && 2 * kBeyond < kBlockPitch);

// Some neighbouring MCUs of an MCU row, whose blocks are transformed together: all of luma, then Cb, then Cr.
struct BlockBatch {
  int mcu_row, first, mcus;  // the first counts from the tile's
  int luma;                  // blocks

  MILLRACE_HD int blocks(const Shape& shape) const { return mcus * shape.blocks_in_mcu; }
};
MILLRACE_HD inline BlockBatch block_batch(const Shape& shape, int mcu_row, int first) {
  const int left = shape.mcu_columns.count() - first, mcus = left < shape.mcus_at_once ? left : shape.mcus_at_once;
  return {mcu_row, first, mcus, mcus * shape.h * shape.v};
}

struct BlockPlace {
  int mcu, in_mcu;  // the first counts from the tile's
  int component;
  BlockNote note;
};
MILLRACE_HD inline BlockPlace luma_place(const Shape& shape, const BlockBatch& batch, int block) {
  const int shift = shape.h_shift + shape.v_shift, in_mcu = block & ((1 << shift) - 1);
  const int mcu = batch.first + (block >> shift);
  const int across = (mcu << shape.h_shift) + (in_mcu & (shape.h - 1));
  const int down = (batch.mcu_row << shape.v_shift) + (in_mcu >> shape.h_shift);
  const int line = kBlockSide * down & (shape.luma.rows - 1);
  return {mcu, in_mcu, 0, {shape.luma.at + line * shape.luma.pitch + kBlockSide * across, shape.luma.pitch}};
}
MILLRACE_HD inline BlockPlace chroma_place(const Shape& shape, const BlockBatch& batch, int block) {
  const int component = block < batch.mcus ? 1 : 2, mcu = batch.first + block - (component - 1) * batch.mcus;
  const SamplePlanes& plane = component == 1 ? shape.blue : shape.red;
  const int line = kBlockSide * batch.mcu_row & (plane.rows - 1);
  return {mcu,
          shape.blocks_in_mcu - 3 + component,
          component,
          {plane.at + line * plane.pitch + kBlockSide * mcu, plane.pitch}};
}

// The coefficients of one block in shared memory. Those beyond what is ordinary become a little more than that.
struct BlockWriter {
  std::int16_t* block;
  const std::uint32_t* quants;
  int magnitude = 0;

  MILLRACE_HD void put(int position, int value) {
    constexpr int kMost = kMostInColumn + 1;
    const std::uint32_t quant = quants[position];
    const int product = value * static_cast<int>(quant >> 8);  // of 16 bits each
    const int level = product < -kMost ? -kMost : product > kMost ? kMost : product;
    magnitude += level < 0 ? -level : level;
    block[quant & 255] = static_cast<std::int16_t>(level);
  }
};

MILLRACE_HD constexpr int run_of(Token token) {
  return token >> 12;
}
MILLRACE_HD constexpr int value_of(Token token) {
  return static_cast<std::int16_t>(token << 4) >> 4;
}

// Whether tokens put a value beyond the block. A run of zeros may end there.
MILLRACE_HD inline bool leave_block(const Token* tokens, int count) {
  int position = 1;
  for (int i = 0; i < count; ++i, ++position) {
    position += run_of(tokens[i]);
    if (position > 63 && value_of(tokens[i]) != 0) return true;
  }
  return false;
}

// The closer look, at every column.
MILLRACE_HD inline bool is_ordinary_block(const std::int16_t* block) {
  for (int x = 0; x < 8; ++x) {
    Line column;
    for (int y = 0; y < 8; ++y) column.at[y] = block[8 * y + x];
    if (!is_ordinary(column)) return false;
  }
  return true;
}

MILLRACE_HD inline void clear_block(std::byte* block) {
  for (int i = 0; i < 8; ++i) store_aligned(block + 16 * i, Coefficients{});
}

// False: the block is out of the ordinary, or its tokens leave it; it is 0 then.
MILLRACE_HD inline bool expand_block(const TileWork& work, const BlockPlace& place, const BlockEntry& entry,
                                     std::byte* block) {
  clear_block(block);
  store_aligned(block + kCoefficientBytes, place.note);
  BlockWriter writer{reinterpret_cast<std::int16_t*>(block),
                     work.at<std::uint32_t>(work.shape.quants) + kQuantEntries * place.component};
  writer.put(0, entry.dc);
  const Token* const tokens = work.args.tokens + work.job.first_token + entry.first_token;
  int position = 1;
  MILLRACE_BY_FOUR for (int i = 0; i < entry.tokens; ++i) {
    const Token token = tokens[i];
    position += run_of(token);
    if (position > 64) position = 64;
    writer.put(position, value_of(token));
    ++position;
  }
  const bool beyond = position > 64 && leave_block(tokens, entry.tokens);
  if (!beyond && (writer.magnitude <= kMostInColumn || is_ordinary_block(writer.block))) return true;
  clear_block(block);
  return false;
}

// From tokens to dequantised coefficients. A warp has either luma, with its many tokens, or chroma.
MILLRACE_HD inline bool expand_blocks(const TileWork& work, const BlockBatch& batch, Thread thread) {
  const Shape& shape = work.shape;
  const std::int64_t mcu =
      std::int64_t{batch.mcu_row - static_cast<int>(work.job.first_mcu_row)} * work.job.mcu_columns +
      shape.mcu_columns.begin;
  const BlockEntry* const entries = work.args.blocks + work.job.first_block + mcu * shape.blocks_in_mcu;
  const int chroma = rounded_up(batch.luma, kWarp), end = chroma + batch.blocks(shape) - batch.luma;
  bool ordinary = true;
  for (int i = thread.index; i < end; i += kTileThreads) {
    if (i >= batch.luma && i < chroma) continue;
    const bool is_luma = i < batch.luma;
    const BlockPlace place = is_luma ? luma_place(shape, batch, i) : chroma_place(shape, batch, i - chroma);
    const int block = is_luma ? i : batch.luma + i - chroma;
    ordinary &= expand_block(work, place, entries[place.mcu * shape.blocks_in_mcu + place.in_mcu],
                             work.memory + shape.blocks + block * kBlockPitch);
  }
  return ordinary;
}

MILLRACE_HD inline void transform_columns(const TileWork& work, int count, Thread thread) {
  std::byte* const blocks = work.memory + work.shape.blocks;
  for (int i = thread.index; i < 8 * count; i += kTileThreads) {
    auto* const column = reinterpret_cast<std::int16_t*>(blocks + i / 8 * kBlockPitch) + i % 8;
    Line line;
    for (int k = 0; k < 8; ++k) line.at[k] = column[8 * k];
    line = transform_column(line);
    for (int k = 0; k < 8; ++k) column[8 * k] = static_cast<std::int16_t>(line.at[k]);
  }
}

MILLRACE_HD inline void transform_rows(const TileWork& work, int count, Thread thread) {
  const std::byte* const blocks = work.memory + work.shape.blocks;
  for (int i = thread.index; i < 8 * count; i += kTileThreads) {
    const std::byte* const block = blocks + i / 8 * kBlockPitch;
    const auto note = load_aligned<BlockNote>(block + kCoefficientBytes);
    const auto row = load_aligned<Coefficients>(block + i % 8 * 16);
    Line values;
    for (int k = 0; k < 8; ++k) values.at[k] = row.at[k];
    values = transform_row(values);
    const EightSamples samples{{packed(values.at), packed(values.at + 4)}};
    store_aligned(work.memory + note.at + i % 8 * note.pitch, samples);
  }
}

}  // namespace millrace::kernels::cuda
