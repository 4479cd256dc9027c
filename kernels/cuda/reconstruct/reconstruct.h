// K2, reconstruct: from tokens to a tile of a tensor, bit-equal to the CPU's `exact`. A thread block slides down the
// MCU rows that its tile depends on:
//
//   tokens ─▶ coefficients ─▶ samples ─▶ pixels ─▶ filtered across ─▶ ring of rows ─▶ filtered down ─▶ tensor
//             96 blocks       MCU row    8 rows
//
// and where Pillow filters rows first (PassOrder), pixels go into the ring and are filtered across last. Everything but
// tokens and the tensor stays in shared memory; tile_plan.h cuts tensors into tiles for which it is enough.
//
// An image with blocks out of the ordinary (inverse_dct.h) becomes kNotHere; what is in its tensor then means nothing.
#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/reconstruct/reconstruct_store.h"

namespace millrace::kernels::cuda {

// Four blocks on a multiprocessor of 228 KB, three on one of 164 KB.
inline constexpr int kTileBytes = 53 * 1024;

struct ReconstructShared {
  Shape shape;
  alignas(16) std::byte memory[kTileBytes - rounded_up(sizeof(Shape), 16)];
};
static_assert(sizeof(ReconstructShared) == kTileBytes);

// What a tile's shape may take.
inline constexpr int kTileMemory = sizeof(ReconstructShared::memory);

namespace reconstruct {

// The threads' common walk over what they share, `width` in a row: at most one division a thread.
struct Walk {
  int x, y;
  int width, step_x, step_y;
  MILLRACE_HD Walk(Thread thread, int row_width)
      : x(thread.index % row_width),
        y(thread.index / row_width),
        width(row_width),
        step_x(kTileThreads % row_width),
        step_y(kTileThreads / row_width) {}
  MILLRACE_HD void step() {
    x += step_x;
    y += step_y;
    if (x >= width) x -= width, ++y;
  }
};

// One run over a tile. What lies between phases is the same for all threads: constants, and what the first phases wrote
// into shared memory and nobody writes again.
template <class Block>
struct TileRun {
  Block& block;
  TileWork work;
  int next_row, next_output = 0;  // source row of the image, output row of the tile

  // The samples of an MCU row. `odd`: whether a thread saw a block out of the ordinary.
  template <class Odd>
  MILLRACE_KERNEL void decode_mcu_row(int mcu_row, Odd& odd) {
    const Shape& shape = work.shape;
    for (int first = 0; first < shape.mcu_columns.count(); first += shape.mcus_at_once) {
      const BlockBatch batch = block_batch(shape, mcu_row, first);
      block.each([&](int i) {
        if (!expand_blocks(work, batch, {i})) odd[i] = true;
      });
      block.each([&](int i) { transform_columns(work, batch.blocks(shape), {i}); });
      block.each([&](int i) { transform_rows(work, batch.blocks(shape), {i}); });
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
      block.each([&](int i) { make_pixel_rows(work, rows, {i}); });
      if (!work.shape.rows_first) filter_across(rows);
      next_row = rows.end;
      const Span outputs = complete_outputs();
      work.shape.rows_first ? finish_rows_first(outputs) : finish(outputs);
      next_output = outputs.end;
    }
  }

  // The output rows whose windows are in the ring.
  MILLRACE_KERNEL Span complete_outputs() const {
    const TileWindow* const windows = work.at<TileWindow>(work.shape.row_axis.windows);
    const int ready = next_row - work.shape.rows.begin;
    int end = next_output;
    while (end < work.shape.tile.height && windows[end].end() <= ready) ++end;
    return {next_output, end};
  }

  MILLRACE_KERNEL void filter_across(const Span& rows) {
    block.each([&](int i) {
      work.shape.narrow ? filter_rows_across<NarrowSums>(work, rows, {i})
                        : filter_rows_across<WideSums>(work, rows, {i});
    });
  }

  MILLRACE_KERNEL void finish(const Span& outputs) {
    block.each([&](int i) {
      work.shape.narrow ? store_rows_down<NarrowSums>(outputs, {i}) : store_rows_down<WideSums>(outputs, {i});
    });
  }

  MILLRACE_KERNEL void finish_rows_first(const Span& outputs) {
    for (int first = outputs.begin; first < outputs.end; first += kRowsAtOnce) {
      const Span some{first, outputs.end - first < kRowsAtOnce ? outputs.end : first + kRowsAtOnce};
      block.each([&](int i) {
        work.shape.narrow ? filter_rows_down<NarrowSums>(some, {i}) : filter_rows_down<WideSums>(some, {i});
      });
      block.each([&](int i) {
        work.shape.narrow ? store_rows_across<NarrowSums>(some, {i}) : store_rows_across<WideSums>(some, {i});
      });
    }
  }

 private:
  template <class Sums>
  MILLRACE_KERNEL void store_rows_down(const Span& outputs, Thread thread) const {
    const AxisView rows = view_of(work, work.shape.row_axis);
    const Ring ring = ring_of(work);
    const PixelStore store = pixel_store(work);
    for (Walk at(thread, divided_up(store.width, 2)); at.y < outputs.count(); at.step()) {
      const int x = 2 * at.x, y = outputs.begin + at.y;
      store(x, y, ring.template filter_down<Sums>(rows, x, y));
    }
  }

  template <class Sums>
  MILLRACE_KERNEL void filter_rows_down(const Span& outputs, Thread thread) const {
    const AxisView rows = view_of(work, work.shape.row_axis);
    const Ring ring = ring_of(work);
    std::uint32_t* const filtered = work.at<std::uint32_t>(work.shape.pixels);
    for (Walk at(thread, ring.pitch / 2); at.y < outputs.count(); at.step()) {
      const PixelPair pair = ring.template filter_down<Sums>(rows, 2 * at.x, outputs.begin + at.y);
      store_aligned(filtered + at.y * ring.pitch + 2 * at.x, PackedPair{{packed(pair.at[0]), packed(pair.at[1])}});
    }
  }

  template <class Sums>
  MILLRACE_KERNEL void store_rows_across(const Span& outputs, Thread thread) const {
    const int pitch = work.shape.pixel_pitch;
    const AxisView columns = view_of(work, work.shape.column_axis);
    const std::uint32_t* const filtered = work.at<std::uint32_t>(work.shape.pixels);
    const PixelStore store = pixel_store(work);
    for (Walk at(thread, divided_up(store.width, 2)); at.y < outputs.count(); at.step()) {
      const std::uint32_t* const row = filtered + at.y * pitch;
      store(2 * at.x, outputs.begin + at.y, cuda::filter_across<Sums>(columns, row, 2 * at.x));
    }
  }
};

}  // namespace reconstruct

// Block i makes args.tiles[i]. REQUIRES: kTileThreads; shape_of() the tile takes kTileMemory at most; its MCU rows are
// among those whose block entries are there.
template <class Block>
MILLRACE_KERNEL void reconstruct_tile(Block& block, const ReconstructArgs& args) {
  auto& shared = block.template shared<ReconstructShared>();
  const Tile tile = args.tiles[block.index()];
  const ImageJob& job = args.images[tile.image];
  auto odd = block.template per_thread<bool>();
  block.each([&](int i) {
    odd[i] = Block::load(args.status + job.decoded) != Status::kDone;
    if (i == 0) shared.shape = shape_of(args.spec, job, args.weights, tile);
  });
  if (block.any(odd)) return;

  const TileWork work{args, job, shared.shape, shared.memory};
  reconstruct::TileRun<Block> run{block, work, shared.shape.rows.begin};
  block.each([&](int i) {
    load_quants(work, {i});
    load_store(work, {i});
    load_axes(work, {i});
    load_patches(work, {i});
  });
  for (int row = shared.shape.mcu_rows.begin; row < shared.shape.mcu_rows.end; ++row) {
    run.decode_mcu_row(row, odd);
    run.make_rows(run.ready_rows(row));
  }
  const bool any_odd = block.any(odd);
  block.each([&](int i) {
    if (i == 0 && any_odd) Block::store(args.status + job.decoded, Status::kNotHere);
  });
}

}  // namespace millrace::kernels::cuda
