// Tokens to samples: the blocks of one MCU row, as far as a tile depends on them, kBlocksAtOnce at a time.
#pragma once

#include <cstring>

#include "kernels/cuda/inverse_dct.h"
#include "kernels/cuda/tile.h"

namespace millrace::kernels::cuda {

// Of those that share a piece of work.
struct Thread {
  int index, count;
};

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

struct alignas(16) Coefficients {
  std::int16_t at[8];
};

// So many bytes that one access reads or writes them.
template <int kBytes>
struct alignas(kBytes) Bytes {
  std::uint8_t at[kBytes];
};

// REQUIRES: alignment to the value's size.
template <class T>
MILLRACE_HD T load_as(const void* from) {
  T value;
  std::memcpy(&value, __builtin_assume_aligned(from, sizeof(T)), sizeof(T));
  return value;
}
template <class T>
MILLRACE_HD void store_as(void* to, const T& value) {
  std::memcpy(__builtin_assume_aligned(to, sizeof(T)), &value, sizeof(T));
}

// Position in zig-zag order to position in natural order (T.81 figure A.6).
MILLRACE_HD inline int natural_position(int zig_zag) {
  constexpr std::uint8_t kPositions[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                           12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                           35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                           58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};
  return kPositions[zig_zag];
}

// Factors in zig-zag order with where their coefficients go, so that a token needs one look-up.
MILLRACE_HD inline void load_quants(const TileWork& work, Thread thread) {
  std::uint32_t* const quants = work.at<std::uint32_t>(work.shape.quants);
  for (int i = thread.index; i < 64 * work.shape.components; i += thread.count) {
    const int natural = natural_position(i % 64);
    const std::uint32_t factor = work.args.quants[64 * work.job.component[i / 64].quant + natural];
    quants[i] = factor << 8 | static_cast<std::uint32_t>(natural);
  }
}

// A block of the MCU row: whose component's it is, and where its samples go, in blocks from the plane's first.
struct BlockPlace {
  int mcu, component, across, down;
};
MILLRACE_HD inline BlockPlace place_of(const Shape& shape, int block) {
  const int mcu = block / shape.blocks_in_mcu, in_mcu = block % shape.blocks_in_mcu, luma = shape.h * shape.v;
  if (in_mcu >= luma) return {mcu, in_mcu - luma + 1, mcu, 0};
  return {mcu, 0, mcu * shape.h + in_mcu % shape.h, in_mcu / shape.h};
}

// False: out of the ordinary, and 0 instead.
MILLRACE_HD inline bool put_coefficient(std::int16_t* block, std::uint32_t quant, int value) {
  const int level = value * static_cast<int>(quant >> 8);  // of 16 bits each
  const bool ordinary = level >= -kMostInColumn && level <= kMostInColumn;
  if (ordinary) block[quant & 255] = static_cast<std::int16_t>(level);
  return ordinary;
}

MILLRACE_HD inline bool expand_block(const TileWork& work, const BlockEntry& entry, const std::uint32_t* quants,
                                     std::int16_t* block) {
  for (int i = 0; i < 8; ++i) store_as(block + 8 * i, Bytes<16>{});
  bool ordinary = put_coefficient(block, quants[0], entry.dc);
  const Token* const tokens = work.args.tokens + work.job.first_token + entry.first_token;
  int position = 1;
  for (int i = 0; i < entry.tokens; ++i) {
    const int token = tokens[i], value = static_cast<std::int16_t>(token << 4) >> 4;
    position += token >> 12;
    if (position < 64)
      ordinary &= put_coefficient(block, quants[position], value);
    else
      ordinary &= value == 0;
    ++position;
  }
  return ordinary;
}

// Blocks first .. first + count - 1 of the MCU row, from tokens to dequantised coefficients.
MILLRACE_HD inline bool expand_blocks(const TileWork& work, int mcu_row, int first, int count, Thread thread) {
  const Shape& shape = work.shape;
  const std::int64_t mcu =
      std::int64_t{mcu_row - static_cast<int>(work.job.first_mcu_row)} * work.job.mcu_columns + shape.mcu_columns.begin;
  const BlockEntry* const entries = work.args.blocks + work.job.first_block + mcu * shape.blocks_in_mcu + first;
  bool ordinary = true;
  for (int i = thread.index; i < count; i += thread.count) {
    const int component = place_of(shape, first + i).component;
    ordinary &= expand_block(work, entries[i], work.at<std::uint32_t>(shape.quants) + 64 * component,
                             work.at<std::int16_t>(shape.blocks + i * kBlockPitch));
  }
  return ordinary;
}

MILLRACE_HD inline bool transform_columns(const TileWork& work, int count, Thread thread) {
  bool ordinary = true;
  for (int i = thread.index; i < 8 * count; i += thread.count) {
    std::int16_t* const column = work.at<std::int16_t>(work.shape.blocks + i / 8 * kBlockPitch) + i % 8;
    Line line;
    for (int k = 0; k < 8; ++k) line.at[k] = column[8 * k];
    ordinary &= transform_column(line);
    for (int k = 0; k < 8; ++k) column[8 * k] = static_cast<std::int16_t>(line.at[k]);
  }
  return ordinary;
}

MILLRACE_HD inline void transform_rows(const TileWork& work, int mcu_row, int first, int count, Thread thread) {
  const Shape& shape = work.shape;
  for (int i = thread.index; i < 8 * count; i += thread.count) {
    const BlockPlace place = place_of(shape, first + i / 8);
    const SamplePlanes& plane = place.component == 0 ? shape.luma : place.component == 1 ? shape.blue : shape.red;
    const int line = mcu_row * (plane.rows / shape.lines_held) + kBlockSide * place.down + i % 8;
    const auto row = load_as<Coefficients>(work.at<std::int16_t>(shape.blocks + i / 8 * kBlockPitch) + i % 8 * 8);
    Line values;
    for (int k = 0; k < 8; ++k) values.at[k] = row.at[k];
    values = transform_row(values);
    Bytes<8> samples;
    for (int k = 0; k < 8; ++k) samples.at[k] = static_cast<std::uint8_t>(values.at[k]);
    store_as(work.memory + plane.at + (line & (plane.rows - 1)) * plane.pitch + kBlockSide * place.across, samples);
  }
}

}  // namespace millrace::kernels::cuda
