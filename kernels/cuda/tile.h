// What a tile of a tensor depends on, and how its thread block's shared memory is divided. Host and device find the
// same: the host to cut tensors into tiles that fit, the device to work.
#pragma once

#include <cstdint>

#include "kernels/cuda/axis.h"
#include "kernels/cuda/colour.h"
#include "kernels/cuda/reconstruct_args.h"

namespace millrace::kernels::cuda {

inline constexpr int kRowsAtOnce = 8;     // source rows that pass through colour and the first filter together
inline constexpr int kBlocksAtOnce = 64;  // blocks that pass through the inverse DCT together
inline constexpr int kBlockPitch = 144;   // bytes of a block's coefficients: 16 more, so that banks differ
inline constexpr int kBlockSide = 8;

struct Span {
  int begin, end;
  MILLRACE_HD int count() const { return end - begin; }
};

MILLRACE_HD constexpr int divided_up(int value, int by) {
  return (value + by - 1) / by;
}
MILLRACE_HD constexpr int rounded_up(int value, int to) {
  return divided_up(value, to) * to;
}

// An axis of a tile in shared memory: for each of its outputs the window's start, its end, and its weights, tap by tap.
struct TileAxis {
  int outputs, taps;
  int starts;  // offset in shared memory; ends and weights follow
  MILLRACE_HD int ends() const { return starts + 4 * outputs; }
  MILLRACE_HD int weights() const { return ends() + 4 * outputs; }
};

struct SamplePlanes {
  int at;     // offset in shared memory
  int pitch;  // bytes, of which an odd number of blocks makes a row, so that banks differ
  int rows;   // held: a power of two
};

// Pixels and rows count in the image, windows in the crop.
struct Shape {
  Side across, down;
  Tile tile;
  Span columns, rows;          // source pixels that the tile depends on
  Span mcu_columns, mcu_rows;  // of which chroma smoothing may look at one sample more
  int components, h, v, blocks_in_mcu;
  Span chroma;      // samples across that are there
  int chroma_rows;  // of the image
  int lines_held;   // MCU rows
  int first_pixel;  // of rows of pixels: columns.begin, rounded down to a multiple of 4
  int pixel_pitch;  // pixels of such a row
  int ring_rows;
  bool rows_first;
  Smoothing smoothing;
  TileAxis column_axis, row_axis;
  SamplePlanes luma, blue, red;
  int quants, store, blocks, pixels, ring;  // offsets in shared memory; blocks and pixels take turns
  int bytes;
};

MILLRACE_HD inline bool filters_rows_first(const TensorSpec& spec, int width, int height, int to_width, int to_height) {
  const int lost_width = width - to_width, lost_height = height - to_height;
  return spec.order == PassOrder::kAsPillow13 && lost_width != 0 && lost_height > 0 && lost_height > 2 * lost_width;
}

// The MCUs along one side that hold `span` and, where chroma is smoothed, the samples beside it.
MILLRACE_HD inline Span mcus_of(const Span& span, int blocks, int margin, int all) {
  const int first = span.begin - margin, end = divided_up(span.end + margin, kBlockSide * blocks);
  return {(first > 0 ? first : 0) / (kBlockSide * blocks), end < all ? end : all};
}

MILLRACE_HD inline void find_sides(const TensorSpec& spec, const ImageJob& job, const std::int32_t* weights,
                                   Shape& shape) {
  const bool whole = job.resized_width == 0;
  const int width = whole ? spec.width : job.resized_width, height = whole ? spec.height : job.resized_height;
  const auto table = [&](std::uint32_t at) { return at == kComputed ? nullptr : weights + at; };
  shape.across =
      make_side(job.crop_width, width, whole ? 0 : job.window_left, spec.width, spec.filter, table(job.column_weights));
  shape.down =
      make_side(job.crop_height, height, whole ? 0 : job.window_top, spec.height, spec.filter, table(job.row_weights));
  shape.rows_first = filters_rows_first(spec, job.crop_width, job.crop_height, width, height);
}

MILLRACE_HD inline void find_source(const ImageJob& job, Shape& shape) {
  const Tile& tile = shape.tile;
  const auto source = [](const Side& side, int first, int count, int offset) {
    return Span{offset + side.window(first).start, offset + side.window(first + count - 1).end()};
  };
  shape.columns = source(shape.across, tile.left, tile.width, job.crop_left);
  shape.rows = source(shape.down, tile.top, tile.height, job.crop_top);
  shape.components = job.components;
  shape.blocks_in_mcu = job.blocks_in_mcu;
  shape.h = job.component[0].h;
  shape.v = job.component[0].v;
  shape.smoothing = smoothing_of(shape.h, shape.v, job.width);
  shape.mcu_columns = mcus_of(shape.columns, shape.h, smooths_across(shape.smoothing) ? 2 : 0, job.mcu_columns);
  shape.mcu_rows = mcus_of(shape.rows, shape.v, smooths_down(shape.smoothing) ? 2 : 0, job.mcu_rows);
  const int there = kBlockSide * shape.mcu_columns.end, width = divided_up(job.width, shape.h);
  shape.chroma = {kBlockSide * shape.mcu_columns.begin, there < width ? there : width};
  shape.chroma_rows = divided_up(job.height, shape.v);
  shape.lines_held = smooths_down(shape.smoothing) ? 2 : 1;
}

// Takes the next bytes of shared memory. Sizes that no memory has end at kTooMuch.
struct Division {
  static constexpr std::int64_t kTooMuch = 1 << 28;
  int next = 0;
  MILLRACE_HD int take(std::int64_t bytes) {
    const int at = next;
    const std::int64_t end = (at + bytes + 15) / 16 * 16;
    next = static_cast<int>(end < kTooMuch ? end : kTooMuch);
    return at;
  }
  MILLRACE_HD TileAxis axis(int outputs, int taps) {
    return {outputs, taps, take(std::int64_t{4} * outputs * (taps + 2))};
  }
  MILLRACE_HD SamplePlanes planes(int mcus, int across, int rows) {
    const int pitch = kBlockSide * (mcus * across | 1);
    return {take(std::int64_t{pitch} * rows), pitch, rows};
  }
};

MILLRACE_HD inline void divide_memory(Shape& shape) {
  Division memory;
  shape.quants = memory.take(kMostComponents * 64 * 4);
  shape.store = memory.take(3 * 256 * 4);
  shape.column_axis = memory.axis(shape.tile.width, shape.across.most_taps());
  shape.row_axis = memory.axis(shape.tile.height, shape.down.most_taps());

  const int mcus = shape.mcu_columns.count(), rows = kBlockSide * shape.lines_held;
  shape.luma = memory.planes(mcus, shape.h, rows * shape.v);
  if (shape.components == 3) {
    shape.blue = memory.planes(mcus, 1, rows);
    shape.red = memory.planes(mcus, 1, rows);
  }

  shape.first_pixel = shape.columns.begin / 4 * 4;
  shape.pixel_pitch = rounded_up(shape.columns.end, 4) - shape.first_pixel;
  shape.ring_rows = shape.row_axis.taps + kRowsAtOnce;
  const int in_a_row = mcus * shape.blocks_in_mcu;
  const int blocks = (in_a_row < kBlocksAtOnce ? in_a_row : kBlocksAtOnce) * kBlockPitch;
  const int pixels = kRowsAtOnce * shape.pixel_pitch * 4;
  shape.blocks = shape.pixels = memory.take(blocks > pixels ? blocks : pixels);
  shape.ring =
      memory.take(std::int64_t{4} * shape.ring_rows * (shape.rows_first ? shape.pixel_pitch : shape.tile.width));
  shape.bytes = memory.next;
}

MILLRACE_HD inline Shape shape_of(const TensorSpec& spec, const ImageJob& job, const std::int32_t* weights,
                                  const Tile& tile) {
  Shape shape{};
  shape.tile = tile;
  find_sides(spec, job, weights, shape);
  find_source(job, shape);
  divide_memory(shape);
  return shape;
}

}  // namespace millrace::kernels::cuda
