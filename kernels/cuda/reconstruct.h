// K2, reconstruct: from tokens to a tile of a tensor, bit-equal to the CPU's `exact`. A thread block slides down the
// MCU rows that its tile depends on:
//
//   tokens ─▶ coefficients ─▶ samples ─▶ pixels ─▶ filtered across ─▶ ring of rows ─▶ filtered down ─▶ tensor
//             64 blocks       MCU row    8 rows
//
// and where Pillow filters rows first (PassOrder), pixels go into the ring and are filtered across last. Everything but
// tokens and the tensor stays in shared memory; tile_plan.h cuts tensors into tiles for which it is enough.
//
// An image with blocks out of the ordinary (inverse_dct.h) becomes kNotHere; what is in its tensor then means nothing.
#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/reconstruct_rows.h"
#include "kernels/cuda/reconstruct_store.h"

namespace millrace::kernels::cuda {

// Four blocks on a multiprocessor of 228 KB, three on one of 164 KB.
inline constexpr int kTileBytes = 52 * 1024;
inline constexpr int kTileThreads = 256;

struct ReconstructShared {
  Shape shape;
  alignas(16) std::byte memory[kTileBytes - rounded_up(sizeof(Shape), 16)];
};
static_assert(sizeof(ReconstructShared) == kTileBytes);

// What a tile's shape may take.
inline constexpr int kTileMemory = sizeof(ReconstructShared::memory);

namespace reconstruct {

// One run over a tile. What lies between phases is the same for all threads: constants, and what the first phases wrote
// into shared memory and nobody writes again.
template <class Block>
struct TileRun {
  Block& block;
  TileWork work;
  int next_row, next_output = 0;  // source row of the image, output row of the tile

  MILLRACE_KERNEL Thread thread(int index) const { return {index, block.threads()}; }

  // The samples of an MCU row. `odd`: whether a thread saw a block out of the ordinary.
  template <class Odd>
  MILLRACE_KERNEL void decode_mcu_row(int mcu_row, Odd& odd) {
    const int blocks = work.shape.mcu_columns.count() * work.shape.blocks_in_mcu;
    for (int first = 0; first < blocks; first += kBlocksAtOnce) {
      const int count = blocks - first < kBlocksAtOnce ? blocks - first : kBlocksAtOnce;
      block.each([&](int i) {
        if (!expand_blocks(work, mcu_row, first, count, thread(i))) odd[i] = true;
      });
      block.each([&](int i) {
        if (!transform_columns(work, count, thread(i))) odd[i] = true;
      });
      block.each([&](int i) { transform_rows(work, mcu_row, first, count, thread(i)); });
    }
  }

  // The first source row that still lacks samples once those of `mcu_row` are there.
  MILLRACE_KERNEL int ready_rows(int mcu_row) const {
    const Shape& shape = work.shape;
    const int ready = kBlockSide * shape.v * (mcu_row + 1) - (smooths_down(shape.smoothing) ? 1 : 0);
    return mcu_row + 1 == shape.mcu_rows.end || ready > shape.rows.end ? shape.rows.end : ready;
  }

  MILLRACE_KERNEL void make_rows(int ready) {
    while (next_row < ready) {
      const Span rows{next_row, ready - next_row < kRowsAtOnce ? ready : next_row + kRowsAtOnce};
      block.each([&](int i) { make_pixel_rows(work, rows, thread(i)); });
      if (!work.shape.rows_first) block.each([&](int i) { filter_rows_across(work, rows, thread(i)); });
      next_row = rows.end;
      const Span outputs = complete_outputs();
      work.shape.rows_first ? finish_rows_first(outputs) : finish(outputs);
      next_output = outputs.end;
    }
  }

  // The output rows whose windows are in the ring.
  MILLRACE_KERNEL Span complete_outputs() const {
    const int* const ends = work.at<int>(work.shape.row_axis.ends());
    int end = next_output;
    while (end < work.shape.tile.height && ends[end] <= next_row - work.shape.rows.begin) ++end;
    return {next_output, end};
  }

  MILLRACE_KERNEL void store(int x, int y, std::uint32_t pixel) const {
    store_pixel(work, work.shape.tile.left + x, work.shape.tile.top + y, pixel);
  }

  MILLRACE_KERNEL void finish(const Span& outputs) {
    const int width = work.shape.tile.width;
    block.each([&](int index) {
      for (int i = index; i < outputs.count() * width; i += block.threads()) {
        const int x = i % width, y = outputs.begin + i / width;
        store(x, y, filter_down(work, width, x, y));
      }
    });
  }

  MILLRACE_KERNEL void finish_rows_first(const Span& outputs) {
    const int width = work.shape.tile.width, pitch = work.shape.pixel_pitch;
    std::uint32_t* const filtered = work.template at<std::uint32_t>(work.shape.pixels);
    for (int first = outputs.begin; first < outputs.end; first += kRowsAtOnce) {
      const int count = outputs.end - first < kRowsAtOnce ? outputs.end - first : kRowsAtOnce;
      block.each([&](int index) {
        for (int i = index; i < count * pitch; i += block.threads())
          filtered[i] = filter_down(work, pitch, i % pitch, first + i / pitch);
      });
      block.each([&](int index) {
        for (int i = index; i < count * width; i += block.threads())
          store(i % width, first + i / width, filter_across(work, filtered + i / width * pitch, i % width));
      });
    }
  }
};

}  // namespace reconstruct

// Block i makes args.tiles[i]. REQUIRES: shape_of() the tile takes kTileMemory at most; its MCU rows are among those
// whose block entries are there.
template <class Block>
MILLRACE_KERNEL void reconstruct_tile(Block& block, const ReconstructArgs& args) {
  auto& shared = block.template shared<ReconstructShared>();
  const Tile tile = args.tiles[block.index()];
  const ImageJob& job = args.images[tile.image];
  auto odd = block.template per_thread<bool>();
  block.each([&](int i) {
    odd[i] = args.status[tile.image] != Status::kDone;
    if (i == 0) shared.shape = shape_of(args.spec, job, args.weights, tile);
  });
  if (block.any(odd)) return;

  const TileWork work{args, job, shared.shape, shared.memory};
  reconstruct::TileRun<Block> run{block, work, shared.shape.rows.begin};
  block.each([&](int i) {
    load_quants(work, run.thread(i));
    load_store(work, run.thread(i));
    load_axis(work, shared.shape.across, shared.shape.column_axis, tile.left, run.thread(i));
    load_axis(work, shared.shape.down, shared.shape.row_axis, tile.top, run.thread(i));
  });
  for (int row = shared.shape.mcu_rows.begin; row < shared.shape.mcu_rows.end; ++row) {
    run.decode_mcu_row(row, odd);
    run.make_rows(run.ready_rows(row));
  }
  const bool any_odd = block.any(odd);
  block.each([&](int i) {
    if (i == 0 && any_odd) args.status[tile.image] = Status::kNotHere;
  });
}

}  // namespace millrace::kernels::cuda
