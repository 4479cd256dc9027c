// Samples to pixels to filtered rows. Rows of pixels are words, see colour.h; windows and weights of both axes stand in
// shared memory.
#pragma once

#include "kernels/cuda/reconstruct_blocks.h"

namespace millrace::kernels::cuda {

// The weights of outputs first .. first + axis.outputs - 1 of a side. Windows count from the first source sample that
// the tile depends on.
MILLRACE_HD inline void load_axis(const TileWork& work, const Side& side, const TileAxis& axis, int first,
                                  Thread thread) {
  const int origin = side.window(first).start;
  for (int i = thread.index; i < axis.outputs; i += thread.count) {
    const Window window = side.window(first + i);
    work.at<int>(axis.starts)[i] = window.start - origin;
    work.at<int>(axis.ends())[i] = window.end() - origin;
    side.weigh(first + i, window, work.at<std::int32_t>(axis.weights()) + i, axis.outputs);
  }
}

// --- colour ---

MILLRACE_HD inline const std::uint8_t* row_of(const TileWork& work, const SamplePlanes& plane, int y) {
  return work.at<std::uint8_t>(plane.at + (y & (plane.rows - 1)) * plane.pitch);
}

struct Four {
  int at[4];
};

// The samples of a chroma plane for pixels x .. x + 3 of row y, x a multiple of 4, at full size.
struct ChromaRow {
  const Shape& shape;
  const std::uint8_t* near;  // sample 0 of the image's row
  const std::uint8_t* far;   // of the row on the other side, where smoothing goes down
  int y;

  MILLRACE_HD int clamped(int sample) const {
    const int last = shape.chroma.end - 1;
    return sample < shape.chroma.begin ? shape.chroma.begin : sample > last ? last : sample;
  }
  MILLRACE_HD Four four(int x) const {
    if (shape.smoothing == Smoothing::kAcross)
      return across(
          x, [&](int i) { return int{near[i]}; }, smooth_across);
    if (shape.smoothing == Smoothing::kBoth)
      return across(
          x, [&](int i) { return 3 * near[i] + far[i]; }, smooth_sums);
    Four result;
    for (int i = 0; i < 4; ++i) {
      const int sample = clamped((x + i) / shape.h);
      result.at[i] = shape.smoothing == Smoothing::kDown ? smooth_down(y, near[sample], far[sample]) : near[sample];
    }
    return result;
  }

 private:
  template <class Value, class Smooth>
  MILLRACE_HD Four across(int x, Value value, Smooth smooth) const {
    int samples[4];
    for (int i = 0; i < 4; ++i) samples[i] = value(clamped(x / 2 - 1 + i));
    return {smooth(x, samples[1], samples[0]), smooth(x + 1, samples[1], samples[2]),
            smooth(x + 2, samples[2], samples[1]), smooth(x + 3, samples[2], samples[3])};
  }
};

MILLRACE_HD inline ChromaRow chroma_row(const TileWork& work, const SamplePlanes& plane, int y) {
  const Shape& shape = work.shape;
  const int near = y / shape.v, beside = y % 2 == 0 ? near - 1 : near + 1, last = shape.chroma_rows - 1;
  const int far = beside < 0 ? 0 : beside > last ? last : beside;
  const std::uint8_t* const row = row_of(work, plane, near);
  const std::uint8_t* const other = smooths_down(shape.smoothing) ? row_of(work, plane, far) : row;
  return {shape, row - shape.chroma.begin, other - shape.chroma.begin, y};
}

// Where the first filter's source row y is written or found, pixel first_pixel first.
MILLRACE_HD inline std::uint32_t* pixel_row(const TileWork& work, int y) {
  const Shape& shape = work.shape;
  const int row = y - shape.rows.begin;
  if (shape.rows_first) return work.at<std::uint32_t>(shape.ring) + row % shape.ring_rows * shape.pixel_pitch;
  return work.at<std::uint32_t>(shape.pixels) + row % kRowsAtOnce * shape.pixel_pitch;
}

// Four pixels: as many as an access of 16 bytes holds.
MILLRACE_HD inline void make_pixels(const TileWork& work, int x, int y) {
  const Shape& shape = work.shape;
  const int column = x - kBlockSide * shape.h * shape.mcu_columns.begin;
  const auto luma = load_as<Bytes<4>>(row_of(work, shape.luma, y) + column);
  struct alignas(16) {
    std::uint32_t at[4];
  } pixels;
  if (shape.components == 1) {
    for (int i = 0; i < 4; ++i) pixels.at[i] = packed(luma.at[i], luma.at[i], luma.at[i]);
  } else {
    const Four blue = chroma_row(work, shape.blue, y).four(x), red = chroma_row(work, shape.red, y).four(x);
    for (int i = 0; i < 4; ++i) pixels.at[i] = to_rgb(luma.at[i], blue.at[i], red.at[i]);
  }
  store_as(pixel_row(work, y) + (x - shape.first_pixel), pixels);
}

MILLRACE_HD inline void make_pixel_rows(const TileWork& work, const Span& rows, Thread thread) {
  const int fours = work.shape.pixel_pitch / 4;
  for (int i = thread.index; i < fours * rows.count(); i += thread.count)
    make_pixels(work, work.shape.first_pixel + i % fours * 4, rows.begin + i / fours);
}

// --- filters ---

// A pixel's three channels, with 22 fractional bits.
struct Sums {
  std::int32_t at[3] = {1 << (kPrecisionBits - 1), 1 << (kPrecisionBits - 1), 1 << (kPrecisionBits - 1)};

  MILLRACE_HD void add(std::uint32_t pixel, std::int32_t weight) {
    for (int c = 0; c < 3; ++c) at[c] += channel_of(pixel, c) * weight;
  }
  MILLRACE_HD std::uint32_t rounded() const {
    return packed(to_byte(at[0] >> kPrecisionBits), to_byte(at[1] >> kPrecisionBits), to_byte(at[2] >> kPrecisionBits));
  }
};

// Output pixel x of a row of pixels that begins with first_pixel.
MILLRACE_HD inline std::uint32_t filter_across(const TileWork& work, const std::uint32_t* row, int x) {
  const TileAxis& axis = work.shape.column_axis;
  const std::int32_t* weight = work.at<std::int32_t>(axis.weights()) + x;
  const int first = work.shape.columns.begin - work.shape.first_pixel;
  Sums sums;
  for (int i = work.at<int>(axis.starts)[x]; i < work.at<int>(axis.ends())[x]; ++i, weight += axis.outputs)
    sums.add(row[first + i], *weight);
  return sums.rounded();
}

// Output pixel (x, y) of the ring's rows, which are `pitch` pixels.
MILLRACE_HD inline std::uint32_t filter_down(const TileWork& work, int pitch, int x, int y) {
  const TileAxis& axis = work.shape.row_axis;
  const std::int32_t* weight = work.at<std::int32_t>(axis.weights()) + y;
  const std::uint32_t* const ring = work.at<std::uint32_t>(work.shape.ring) + x;
  const int start = work.at<int>(axis.starts)[y], end = work.at<int>(axis.ends())[y];
  int slot = start % work.shape.ring_rows;
  Sums sums;
  for (int i = start; i < end; ++i, weight += axis.outputs) {
    sums.add(ring[slot * pitch], *weight);
    slot = slot + 1 == work.shape.ring_rows ? 0 : slot + 1;
  }
  return sums.rounded();
}

inline constexpr int kRowsTogether = 4;  // that share a load of a weight

// Columns first: source rows, filtered across, into the ring.
MILLRACE_HD inline void filter_rows_across(const TileWork& work, const Span& rows, Thread thread) {
  const Shape& shape = work.shape;
  const TileAxis& axis = shape.column_axis;
  const int first = shape.columns.begin - shape.first_pixel, width = shape.tile.width;
  for (int i = thread.index; i < kRowsAtOnce / kRowsTogether * width; i += thread.count) {
    const int x = i % width, y = rows.begin + i / width * kRowsTogether;
    const std::int32_t* weight = work.at<std::int32_t>(axis.weights()) + x;
    const int end = work.at<int>(axis.ends())[x];
    Sums sums[kRowsTogether];
    const std::uint32_t* in[kRowsTogether];
    for (int r = 0; r < kRowsTogether; ++r) in[r] = pixel_row(work, y + r < rows.end ? y + r : rows.begin) + first;
    for (int k = work.at<int>(axis.starts)[x]; k < end; ++k, weight += width) {
      for (int r = 0; r < kRowsTogether; ++r) sums[r].add(in[r][k], *weight);
    }
    for (int r = 0; r < kRowsTogether; ++r) {
      if (y + r >= rows.end) break;
      const int slot = (y + r - shape.rows.begin) % shape.ring_rows;
      work.at<std::uint32_t>(shape.ring)[slot * width + x] = sums[r].rounded();
    }
  }
}

}  // namespace millrace::kernels::cuda
