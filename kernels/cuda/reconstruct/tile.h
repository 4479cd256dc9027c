// What a tile of a tensor depends on, and how its thread block's shared memory is divided. Host and device find the
// same: the host to cut tensors into tiles that fit, the device to work.
#pragma once

#include <cstdint>

#include "kernels/cuda/reconstruct/axis.h"
#include "kernels/cuda/reconstruct/colour.h"
#include "kernels/cuda/reconstruct/reconstruct_args.h"

namespace millrace::kernels::cuda {

inline constexpr int kRowsAtOnce = 8;     // source rows that pass through colour and the first filter together
inline constexpr int kBlocksAtOnce = 96;  // blocks that pass through the inverse DCT together
inline constexpr int kBlockPitch = 144;   // bytes of a block's coefficients: 16 more, so that banks differ
inline constexpr int kTileThreads = 256;  // of a thread block
inline constexpr int kBlockSide = 8;
inline constexpr int kQuantEntries = 65;  // one after the last, for what leaves the block

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

// An axis of a tile in shared memory: for each of its outputs the window and where it is, and the weights, tap by tap.
struct TileAxis {
  int outputs, taps;
  int windows;  // offset in shared memory; the other arrays follow
  MILLRACE_HD int places() const { return windows + 4 * outputs; }
  MILLRACE_HD int weights() const { return places() + 4 * outputs; }
};

// In one word.
struct TileWindow {
  std::uint16_t start, count;  // samples, from the first that the tile depends on
  MILLRACE_HD int end() const { return start + count; }
};

// Where an element of the tensor is: bytes from the image's first, by columns and rows of the stored picture. In
// patches the steps from column to column and row to row are unlike each other: see PatchTable.
struct TensorPlaces {
  int origin, column, row, channel;
};

// In shared memory, where the tensor has patches. Behind it the places of the tile's columns, in bytes from the image's
// first element, and one more, which means nothing, if there is an odd number of them; then those of its rows.
struct PatchTable {
  int frames, frame;  // how many times an element is stored, so many bytes apart
  int room;           // places of columns

  MILLRACE_HD const int* column(int x) const { return reinterpret_cast<const int*>(this + 1) + x; }
  MILLRACE_HD const int* row(int y) const { return column(room + y); }
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
  Span mcu_columns, mcu_rows;  // that are decoded: of those judged(), and chroma smoothing may look at one sample more
  int components, h, v, blocks_in_mcu;
  int h_shift, v_shift;       // log2
  int chroma_columns;         // samples across that are there, from the first MCU's
  int chroma_rows;            // of the image
  int lines_held;             // MCU rows
  int first_pixel;            // of rows of pixels: columns.begin, rounded down to a multiple of 4
  int pixel_pitch;            // pixels of such a row
  int ring_rows, ring_pitch;  // pixels
  int mcus_at_once;
  bool rows_first;
  bool converts_last;  // pixels are Y, Cb, Cr until they are stored
  bool narrow;         // weights of 8 bits, see NarrowSums
  Smoothing smoothing;
  TensorPlaces places;
  TileAxis column_axis, row_axis;
  SamplePlanes luma, blue, red;
  int patches;                              // offset of the PatchTable; 0: none
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

// The tensor's size along the stored picture's sides.
struct StoredSides {
  int columns, rows;
};
MILLRACE_HD inline StoredSides stored_sides(const ImageJob& job) {
  return (job.turn & kSwapsSides) != 0 ? StoredSides{job.tensor_height, job.tensor_width}
                                       : StoredSides{job.tensor_width, job.tensor_height};
}

// Where sides are swapped, the turned picture's rows are the stored one's columns, and the pass that comes first there
// is the other one here. `fast` keeps to the stored picture's order, which takes less memory.
MILLRACE_HD inline bool stored_rows_first(const TensorSpec& spec, const ImageJob& job, int width, int height) {
  if ((job.turn & kSwapsSides) != 0 && spec.fidelity == Fidelity::kExact)
    return !filters_rows_first(spec, job.crop_height, job.crop_width, height, width);
  return filters_rows_first(spec, job.crop_width, job.crop_height, width, height);
}

MILLRACE_HD inline void find_sides(const TensorSpec& spec, const ImageJob& job, const std::int32_t* weights,
                                   Shape& shape) {
  const bool whole = job.resized_width == 0;
  const StoredSides sides = stored_sides(job);
  const int width = whole ? sides.columns : job.resized_width, height = whole ? sides.rows : job.resized_height;
  const auto table = [&](std::uint32_t at) { return at == kComputed ? nullptr : weights + at; };
  shape.across = make_side(job.crop_width, width, whole ? 0 : job.window_left, sides.columns, job.filter,
                           table(job.column_weights));
  shape.down =
      make_side(job.crop_height, height, whole ? 0 : job.window_top, sides.rows, job.filter, table(job.row_weights));
  shape.across.mirrored = (job.turn & kMirrorsColumns) != 0;
  shape.down.mirrored = (job.turn & kMirrorsRows) != 0;
  shape.rows_first = stored_rows_first(spec, job, width, height);
}

MILLRACE_HD constexpr int log2_of(int power) {
  return power == 4 ? 2 : power - 1;
}

MILLRACE_HD constexpr int channels_of(const TensorSpec& spec) {
  return spec.channels == ChannelOrder::kGrey ? 1 : 3;
}
MILLRACE_HD constexpr bool has_patches(const TensorSpec& spec) {
  return spec.patches.width != 0;
}

// REQUIRES: a tensor of less than 2 GiB.
MILLRACE_HD inline TensorPlaces places_of(const TensorSpec& spec, const ImageJob& job) {
  if (has_patches(spec))
    return {0, 0, 0, spec.element_bytes * spec.patches.temporal * spec.patches.height * spec.patches.width};
  const bool planes = spec.layout == Layout::kNchw, flip = job.flip != 0;
  const int element = spec.element_bytes, across = planes ? element : element * channels_of(spec);
  const int down = across * job.tensor_width, right = flip ? -across : across;
  TensorPlaces places{flip ? down - across : 0, right, down, planes ? down * job.tensor_height : element};
  const StoredSides sides = stored_sides(job);
  if ((job.turn & kSwapsSides) != 0) places.column = down, places.row = right;
  if ((job.turn & kMirrorsColumns) != 0) {
    places.origin += (sides.columns - 1) * places.column;
    places.column = -places.column;
  }
  if ((job.turn & kMirrorsRows) != 0) {
    places.origin += (sides.rows - 1) * places.row;
    places.row = -places.row;
  }
  return places;
}

MILLRACE_HD inline void find_sampling(const TensorSpec& spec, const ImageJob& job, Shape& shape) {
  shape.components = job.components;
  shape.blocks_in_mcu = job.blocks_in_mcu;
  shape.h = job.component[0].h;
  shape.v = job.component[0].v;
  shape.h_shift = log2_of(shape.h);
  shape.v_shift = log2_of(shape.v);
  shape.smoothing = smoothing_of(shape.h, shape.v, job.width);
  const bool fast = spec.fidelity == Fidelity::kFast;
  shape.converts_last = fast && job.components == 3;
  shape.narrow = fast && job.filter != Filter::kBicubic && job.filter != Filter::kLanczos;
  shape.lines_held = smooths_down(shape.smoothing) ? 2 : 1;
}

// The samples of the image that have a say in the verdict on outputs first .. first + count - 1. All of the CPU's windows
// are as long as the longest, and what lies in them is decoded; so it is here, too. They are made longer at the turned
// picture's end.
MILLRACE_HD inline Span judged(const Side& side, int first, int count, int offset) {
  const int taps = side.most_taps();
  if (side.mirrored) {
    const int begin = side.window(first).end() - taps, end = side.window(first + count - 1).end(),
              least = taps < side.in ? taps : side.in;
    return {offset + (begin > 0 ? begin : 0), offset + (end > least ? end : least)};
  }
  const int begin = side.window(first).start, end = side.window(first + count - 1).start + taps;
  return {offset + (begin < side.in - taps ? begin : side.in - taps), offset + (end < side.in ? end : side.in)};
}

MILLRACE_HD inline void find_source(const ImageJob& job, Shape& shape) {
  const Tile& tile = shape.tile;
  const auto source = [](const Side& side, int first, int count, int offset) {
    return Span{offset + side.window(first).start, offset + side.window(first + count - 1).end()};
  };
  shape.columns = source(shape.across, tile.left, tile.width, job.crop_left);
  shape.rows = source(shape.down, tile.top, tile.height, job.crop_top);
  const Span across = judged(shape.across, tile.left, tile.width, job.crop_left);
  const Span down = judged(shape.down, tile.top, tile.height, job.crop_top);
  shape.mcu_columns = mcus_of(across, shape.h, smooths_across(shape.smoothing) ? 2 : 0, job.mcu_columns);
  shape.mcu_rows = mcus_of(down, shape.v, smooths_down(shape.smoothing) ? 2 : 0, job.mcu_rows);
  const int there = kBlockSide * shape.mcu_columns.end, width = divided_up(job.width, shape.h);
  shape.chroma_columns = (there < width ? there : width) - kBlockSide * shape.mcu_columns.begin;
  shape.chroma_rows = divided_up(job.height, shape.v);
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

MILLRACE_HD inline void divide_memory(const TensorSpec& spec, Shape& shape) {
  Division memory;
  shape.quants = memory.take(kMostComponents * kQuantEntries * 4);
  shape.store = memory.take(3 * 256 * 4);
  shape.column_axis = memory.axis(shape.tile.width, shape.across.most_taps());
  shape.row_axis = memory.axis(shape.tile.height, shape.down.most_taps());
  if (has_patches(spec)) {
    const int places = rounded_up(shape.tile.width, 2) + shape.tile.height;
    shape.patches = memory.take(static_cast<int>(sizeof(PatchTable)) + 4 * places);
  }

  const int mcus = shape.mcu_columns.count(), rows = kBlockSide * shape.lines_held;
  shape.luma = memory.planes(mcus, shape.h, rows * shape.v);
  if (shape.components == 3) {
    shape.blue = memory.planes(mcus, 1, rows);
    shape.red = memory.planes(mcus, 1, rows);
  }

  shape.first_pixel = shape.columns.begin / 4 * 4;
  shape.pixel_pitch = rounded_up(shape.columns.end, 4) - shape.first_pixel;
  shape.ring_rows = shape.row_axis.taps + kRowsAtOnce;
  const int most = kBlocksAtOnce / shape.blocks_in_mcu;
  shape.mcus_at_once = mcus < most ? mcus : most;
  const int blocks = shape.mcus_at_once * shape.blocks_in_mcu * kBlockPitch;
  const int pixels = kRowsAtOnce * shape.pixel_pitch * 4;
  shape.blocks = shape.pixels = memory.take(blocks > pixels ? blocks : pixels);
  shape.ring_pitch = shape.rows_first ? shape.pixel_pitch : rounded_up(shape.tile.width, 2);
  shape.ring = memory.take(std::int64_t{4} * shape.ring_rows * shape.ring_pitch);
  shape.bytes = memory.next;
}

MILLRACE_HD inline Shape shape_of(const TensorSpec& spec, const ImageJob& job, const std::int32_t* weights,
                                  const Tile& tile) {
  Shape shape{};
  shape.tile = tile;
  shape.places = places_of(spec, job);
  find_sampling(spec, job, shape);
  find_sides(spec, job, weights, shape);
  find_source(job, shape);
  divide_memory(spec, shape);
  return shape;
}

}  // namespace millrace::kernels::cuda
