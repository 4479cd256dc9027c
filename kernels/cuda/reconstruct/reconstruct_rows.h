// Samples to pixels to filtered rows. Rows of pixels are words, see colour.h; windows and weights of both axes stand in
// shared memory.
#pragma once

#include "kernels/cuda/reconstruct/reconstruct_blocks.h"

namespace millrace::kernels::cuda {

inline constexpr int kNarrowBits = 8;

// From 22 fractional bits to kNarrowBits. Not each weight is rounded but their running sum.
MILLRACE_HD inline void narrow(std::int32_t* weights, int count, int stride) {
  constexpr int kShift = kPrecisionBits - kNarrowBits;
  std::int32_t sum = 1 << (kShift - 1), before = 0;
  MILLRACE_ROLLED for (int t = 0; t < count; ++t) {
    sum += weights[t * stride];
    weights[t * stride] = (sum >> kShift) - before;
    before = sum >> kShift;
  }
}

// The weights of outputs first .. first + axis.outputs - 1 of a side. `place(start)`: where a window is.
template <class Place>
MILLRACE_HD void load_axis(const TileWork& work, const Side& side, const TileAxis& axis, int first, Thread thread,
                           Place place) {
  const int origin = side.window(first).start;
  for (int i = thread.index; i < axis.outputs; i += kTileThreads) {
    const Window window = side.window(first + i);
    const int start = window.start - origin;
    work.at<TileWindow>(axis.windows)[i] = {static_cast<std::uint16_t>(start),
                                            static_cast<std::uint16_t>(window.count)};
    work.at<int>(axis.places())[i] = place(start);
    std::int32_t* const weights = work.at<std::int32_t>(axis.weights()) + i;
    side.weigh(first + i, window, weights, axis.outputs);
    if (work.shape.narrow) narrow(weights, window.count, axis.outputs);
  }
}

// Columns: the first pixel of rows of pixels. Rows: the slot of the ring.
MILLRACE_HD inline void load_axes(const TileWork& work, Thread thread) {
  const Shape& shape = work.shape;
  load_axis(work, shape.across, shape.column_axis, shape.tile.left, thread,
            [&](int start) { return shape.columns.begin - shape.first_pixel + start; });
  load_axis(work, shape.down, shape.row_axis, shape.tile.top, thread,
            [&](int start) { return start % shape.ring_rows; });
}

// --- colour ---

struct Four {
  int at[4];
};

MILLRACE_HD inline Four four_at(const std::uint8_t* samples) {
  const auto bytes = load_aligned<Bytes<4>>(samples);
  return {bytes.at[0], bytes.at[1], bytes.at[2], bytes.at[3]};
}

MILLRACE_HD inline const std::uint8_t* row_of(const TileWork& work, const SamplePlanes& plane, int y) {
  return work.at<std::uint8_t>(plane.at + (y & (plane.rows - 1)) * plane.pitch);
}

// A row of a chroma plane at full size. Samples and pixels count from the first MCU's.
struct ChromaRow {
  const std::uint8_t* near;
  const std::uint8_t* far;  // the row on the other side, where smoothing goes down
  int columns;
  Smoothing smoothing;
  int h_shift, y;

  // Pixels x .. x + 3; x is a multiple of 4.
  MILLRACE_HD Four four(int x) const {
    if (smoothing == Smoothing::kAcross)
      return across(
          x, [&](int i) { return int{near[i]}; }, smooth_across);
    if (smoothing == Smoothing::kBoth)
      return across(
          x, [&](int i) { return 3 * near[i] + far[i]; }, smooth_sums);
    if (h_shift != 0) return repeated(x);
    Four samples = four_at(near + x);
    if (smoothing == Smoothing::kDown) {
      const Four others = four_at(far + x);
      for (int i = 0; i < 4; ++i) samples.at[i] = smooth_down(y, samples.at[i], others.at[i]);
    }
    return samples;
  }

 private:
  MILLRACE_HD Four repeated(int x) const {
    const auto at = [&](int i) { return int{near[(x + i) >> h_shift]}; };
    return {at(0), at(1), at(2), at(3)};
  }
  template <class Value, class Smooth>
  MILLRACE_HD Four across(int x, Value value, Smooth smooth) const {
    const int own = x / 2, last = columns - 1;
    const int a = value(own > 0 ? own - 1 : 0), b = value(least(own, last));
    const int c = value(least(own + 1, last)), d = value(least(own + 2, last));
    return {smooth(0, b, a), smooth(1, b, c), smooth(2, c, b), smooth(3, c, d)};
  }
  MILLRACE_HD static int least(int a, int b) { return a < b ? a : b; }
};

MILLRACE_HD inline ChromaRow chroma_row(const TileWork& work, const SamplePlanes& plane, int y) {
  const Shape& shape = work.shape;
  const int near = y >> shape.v_shift, beside = y % 2 == 0 ? near - 1 : near + 1, last = shape.chroma_rows - 1;
  const int far = beside < 0 ? 0 : beside > last ? last : beside;
  const int other = smooths_down(shape.smoothing) ? far : near;
  return {
      row_of(work, plane, near), row_of(work, plane, other), shape.chroma_columns, shape.smoothing, shape.h_shift, y};
}

struct alignas(16) FourPixels {
  std::uint32_t at[4];
};

// What makes a row of pixels.
struct PixelRow {
  const std::uint8_t* luma;
  ChromaRow blue, red;
  bool grey, converts_last;

  // Pixels x .. x + 3; x is a multiple of 4.
  MILLRACE_HD FourPixels four(int x) const {
    const Four y = four_at(luma + x);
    FourPixels pixels;
    if (grey) {
      for (int i = 0; i < 4; ++i) pixels.at[i] = static_cast<std::uint32_t>(y.at[i]) * 0x010101U;
      return pixels;
    }
    const Four cb = blue.four(x), cr = red.four(x);
    for (int i = 0; i < 4; ++i)
      pixels.at[i] = converts_last ? packed(y.at[i], cb.at[i], cr.at[i]) : packed(to_rgb(y.at[i], cb.at[i], cr.at[i]));
    return pixels;
  }
};

MILLRACE_HD inline PixelRow row_of_pixels(const TileWork& work, int y) {
  const Shape& shape = work.shape;
  return {row_of(work, shape.luma, y), chroma_row(work, shape.blue, y), chroma_row(work, shape.red, y),
          shape.components == 1, shape.converts_last};
}

// Where the first filter finds source row y, pixel first_pixel first.
MILLRACE_HD inline std::uint32_t* pixel_row(const TileWork& work, int y) {
  const Shape& shape = work.shape;
  const int row = y - shape.rows.begin;
  if (shape.rows_first) return work.at<std::uint32_t>(shape.ring) + row % shape.ring_rows * shape.pixel_pitch;
  return work.at<std::uint32_t>(shape.pixels) + row % kRowsAtOnce * shape.pixel_pitch;
}

MILLRACE_HD inline void make_pixel_rows(const TileWork& work, const Span& rows, Thread thread) {
  const Shape& shape = work.shape;
  const int first = shape.first_pixel - kBlockSide * shape.h * shape.mcu_columns.begin, pitch = shape.pixel_pitch;
  for (int y = rows.begin + thread.warp(); y < rows.end; y += kWarps) {
    const PixelRow row = row_of_pixels(work, y);
    std::uint32_t* const pixels = pixel_row(work, y);
    for (int x = 4 * thread.lane(); x < pitch; x += 4 * kWarp) store_aligned(pixels + x, row.four(first + x));
  }
}

// --- filters ---

// A pixel's three channels, weighted.
struct WideSums {
  std::int32_t at[3] = {1 << (kPrecisionBits - 1), 1 << (kPrecisionBits - 1), 1 << (kPrecisionBits - 1)};

  MILLRACE_HD void add(std::uint32_t pixel, std::int32_t weight) {
    for (int c = 0; c < 3; ++c) at[c] += channel_of(pixel, c) * weight;
  }
  MILLRACE_HD Channels rounded() const {
    return {{to_byte(at[0] >> kPrecisionBits), to_byte(at[1] >> kPrecisionBits), to_byte(at[2] >> kPrecisionBits)}};
  }
  MILLRACE_HD std::uint32_t word() const { return packed(rounded()); }
};

// With weights that are not negative and add up to 2^8, two channels share a multiplication.
struct NarrowSums {
  std::uint32_t outer = 0x00800080, middle = 0x0080;

  MILLRACE_HD void add(std::uint32_t pixel, std::int32_t weight) {
    outer += (pixel & 0x00ff00ff) * static_cast<std::uint32_t>(weight);
    middle += static_cast<std::uint32_t>(channel_of(pixel, 1)) * static_cast<std::uint32_t>(weight);
  }
  MILLRACE_HD Channels rounded() const { return {{channel_of(outer, 1), channel_of(middle, 1), channel_of(outer, 3)}}; }
  MILLRACE_HD std::uint32_t word() const { return (outer >> 8 & 0x00ff00ff) | (middle & 0xff00); }
};

// One axis, as a thread sees it.
struct AxisView {
  const TileWindow* windows;
  const int* places;
  const std::int32_t* weights;
  int outputs;
};
MILLRACE_HD inline AxisView view_of(const TileWork& work, const TileAxis& axis) {
  return {work.at<TileWindow>(axis.windows), work.at<int>(axis.places()), work.at<std::int32_t>(axis.weights()),
          axis.outputs};
}

// Two neighbouring pixels, the left one even.
struct PixelPair {
  Channels at[2];
};
struct alignas(8) PackedPair {
  std::uint32_t at[2];
};

// Output pixels x and x + 1 of a row of pixels. The last of an odd number comes twice.
template <class Sums>
MILLRACE_HD PixelPair filter_across(const AxisView& axis, const std::uint32_t* row, int x) {
  PixelPair pair;
  for (int i = 0; i < 2; ++i) {
    const int column = x + i < axis.outputs ? x + i : x;
    const std::uint32_t* const in = row + axis.places[column];
    Sums sums;
    for (int t = 0; t < axis.windows[column].count; ++t) sums.add(in[t], axis.weights[t * axis.outputs + column]);
    pair.at[i] = sums.rounded();
  }
  return pair;
}

// The ring of rows that the second filter reads.
struct Ring {
  const std::uint32_t* pixels;
  int rows, pitch;

  // Output pixels (x, y) and (x + 1, y); x is even.
  template <class Sums>
  MILLRACE_HD PixelPair filter_down(const AxisView& axis, int x, int y) const {
    const std::int32_t* weight = axis.weights + y;
    const std::uint32_t* const end = pixels + rows * pitch;
    const std::uint32_t* in = pixels + axis.places[y] * pitch + x;
    Sums left, right;
    for (int t = axis.windows[y].count; t > 0; --t, weight += axis.outputs) {
      const auto two = load_aligned<PackedPair>(in);
      left.add(two.at[0], *weight);
      right.add(two.at[1], *weight);
      in += pitch;
      if (in >= end) in -= rows * pitch;
    }
    return {{left.rounded(), right.rounded()}};
  }
};
MILLRACE_HD inline Ring ring_of(const TileWork& work) {
  return {work.at<std::uint32_t>(work.shape.ring), work.shape.ring_rows, work.shape.ring_pitch};
}

inline constexpr int kRowsTogether = 4;  // that share a load of a weight
inline constexpr int kColumnsTogether = kTileThreads / (kRowsAtOnce / kRowsTogether);

// Columns first: source rows, filtered across, into the ring.
template <class Sums>
MILLRACE_HD void filter_rows_across(const TileWork& work, const Span& rows, Thread thread) {
  const Shape& shape = work.shape;
  const AxisView axis = view_of(work, shape.column_axis);
  const int width = axis.outputs, ring_rows = shape.ring_rows;
  std::uint32_t* const ring = work.at<std::uint32_t>(shape.ring);
  const int first = rows.begin + thread.index / kColumnsTogether * kRowsTogether;
  const int slot = (first - shape.rows.begin) % ring_rows;
  const std::uint32_t* in[kRowsTogether];
  for (int r = 0; r < kRowsTogether; ++r) in[r] = pixel_row(work, first + r < rows.end ? first + r : rows.begin);
  for (int x = thread.index % kColumnsTogether; x < width; x += kColumnsTogether) {
    const int begin = axis.places[x], end = begin + axis.windows[x].count;
    const std::int32_t* weight = axis.weights + x;
    Sums sums[kRowsTogether];
    for (int k = begin; k < end; ++k, weight += width) {
      for (int r = 0; r < kRowsTogether; ++r) sums[r].add(in[r][k], *weight);
    }
    for (int r = 0; r < kRowsTogether && first + r < rows.end; ++r) {
      const int to = slot + r < ring_rows ? slot + r : slot + r - ring_rows;
      ring[to * shape.ring_pitch + x] = sums[r].word();
    }
  }
}

}  // namespace millrace::kernels::cuda
