// Steps that move pixels. Coordinates and filters are those of Pillow's libImaging/Geometry.c, as kernels/augment has
// them: fixed-point or doubles where Pillow has them, in its order, no product fused with a sum.
#pragma once

#include <cmath>

#include "kernels/cuda/augment/augment_walk.h"

namespace millrace::kernels::cuda::augmenting {

template <class Block>
MILLRACE_KERNEL void move_pixels(Block& block, const StepWork& work) {
  const std::int32_t* const place = work.step.place;
  make_pixels(block, work, [&](int x, int y) { return work.from[place[0] + x * place[1] + y * place[2]]; });
}

template <class Block>
MILLRACE_KERNEL void shift_picture(Block& block, const StepWork& work) {
  const AugmentStep& step = work.step;
  make_pixels(block, work, [&](int x, int y) {
    const int from_x = x + step.place[0], from_y = y + step.place[1];
    return work.has(from_x, from_y) ? work.from[from_y * work.width + from_x] : step.fill;
  });
}

template <class Block>
MILLRACE_KERNEL void erase_box(Block& block, const StepWork& work) {
  const std::int32_t* const place = work.step.place;
  make_pixels(block, work, [&](int x, int y) {
    const bool is_inside = x >= place[0] && x < place[2] && y >= place[1] && y < place[3];
    return is_inside ? work.step.fill : work.from[y * work.width + x];
  });
}

template <class Block>
MILLRACE_KERNEL void scale_nearest(Block& block, const StepWork& work) {
  const std::uint32_t* const columns = work.tables;
  const std::uint32_t* const rows = columns + work.width;
  make_pixels(block, work, [&](int x, int y) {
    const std::uint32_t column = columns[x], row = rows[y];
    if (column == kNowhere || row == kNowhere) return work.step.fill;
    return work.from[row * static_cast<std::uint32_t>(work.width) + column];
  });
}

template <class Block>
MILLRACE_KERNEL void affine_fixed(Block& block, const StepWork& work) {
  const auto place = [&](int i) { return static_cast<std::uint32_t>(work.step.place[i]); };
  make_pixels(block, work, [&](int x, int y) {
    const auto column = static_cast<std::uint32_t>(x), row = static_cast<std::uint32_t>(y);
    const int from_x = static_cast<std::int32_t>(place(0) + column * place(2) + row * place(4)) >> 16;
    const int from_y = static_cast<std::int32_t>(place(1) + column * place(3) + row * place(5)) >> 16;
    return work.has(from_x, from_y) ? work.from[from_y * work.width + from_x] : work.step.fill;
  });
}

MILLRACE_HD inline bool has_place(const StepWork& work, double x, double y) {
  return x >= 0.0 && x < work.width && y >= 0.0 && y < work.height;
}

// Coordinates are sums along a row: a thread a row.
template <class Block>
MILLRACE_KERNEL void affine_summed(Block& block, const StepWork& work) {
  block.each([&](int thread) {
    const double x_step = double_in(work.tables), y_step = double_in(work.tables + 2);
    MILLRACE_ROLLED for (int row = thread; row < work.height; row += kAugmentThreads) {
      double x = double_in(work.tables + 4 + 4 * row), y = double_in(work.tables + 6 + 4 * row);
      std::uint32_t* const to = work.to + row * work.width;
      MILLRACE_ROLLED for (int column = 0; column < work.width; ++column) {
        to[column] =
            has_place(work, x, y) ? work.from[static_cast<int>(y) * work.width + static_cast<int>(x)] : work.step.fill;
        x += x_step;
        y += y_step;
      }
    }
  });
}

// `value` as it is: 2^52 + 2^31 + value has it in its low bits. An addition, of which a GPU does more at a time than
// conversions to doubles.
MILLRACE_HD inline double whole_number(int value) {
  const std::uint64_t bits = std::uint64_t{0x43300000} << 32 | (static_cast<std::uint32_t>(value) ^ 0x80000000U);
  double sum;
  std::memcpy(&sum, &bits, sizeof sum);
  return sum - 4503601774854144.0;
}

MILLRACE_HD inline double between(int a, int b, double part) {
  return whole_number(a) + product(whole_number(b - a), part);
}

MILLRACE_HD inline std::uint32_t bilinear(const StepWork& work, double x, double y) {
  x -= 0.5;
  y -= 0.5;
  const double floor_x = floor(x), floor_y = floor(y), dx = x - floor_x, dy = y - floor_y;
  const int left = static_cast<int>(floor_x), top = static_cast<int>(floor_y);
  const int x0 = clamped(left, 0, work.width - 1), x1 = clamped(left + 1, 0, work.width - 1);
  const std::uint32_t* const above = work.from + clamped(top, 0, work.height - 1) * work.width;
  const std::uint32_t* const below = work.from + clamped(top + 1, 0, work.height - 1) * work.width;
  const std::uint32_t pixels[4] = {above[x0], above[x1], below[x0], below[x1]};
  int values[3];
  for (int c = 0; c < 3; ++c) {
    const double a = between(channel_of(pixels[0], c), channel_of(pixels[1], c), dx);
    const double b = between(channel_of(pixels[2], c), channel_of(pixels[3], c), dx);
    values[c] = static_cast<int>(a + product(b - a, dy));
  }
  return pixel_of(values[0], values[1], values[2]);
}

MILLRACE_HD inline double cubic_at(double start, double linear, double square, double cube, double d) {
  return start + product(d, linear + product(d, square + product(d, cube)));
}
MILLRACE_HD inline double cubic(double v0, double v1, double v2, double v3, double d) {
  return cubic_at(v1, -v0 + v2, product(2, v0 - v1) + v2 - v3, -v0 + v1 - v2 + v3, d);
}
// Of values themselves, whose sums are whole.
MILLRACE_HD inline double cubic_of_values(int v0, int v1, int v2, int v3, double d) {
  const int linear = v2 - v0, square = 2 * (v0 - v1) + v2 - v3, cube = v1 - v0 + v3 - v2;
  return cubic_at(whole_number(v1), whole_number(linear), whole_number(square), whole_number(cube), d);
}

MILLRACE_HD inline std::uint32_t bicubic(const StepWork& work, double x, double y) {
  x -= 0.5;
  y -= 0.5;
  const double floor_x = floor(x), floor_y = floor(y), dx = x - floor_x, dy = y - floor_y;
  const int left = static_cast<int>(floor_x), top = static_cast<int>(floor_y);
  double across[3][4];
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t* const row = work.from + clamped(top - 1 + i, 0, work.height - 1) * work.width;
    std::uint32_t pixels[4];
    for (int k = 0; k < 4; ++k) pixels[k] = row[clamped(left - 1 + k, 0, work.width - 1)];
    for (int c = 0; c < 3; ++c)
      across[c][i] = cubic_of_values(channel_of(pixels[0], c), channel_of(pixels[1], c), channel_of(pixels[2], c),
                                     channel_of(pixels[3], c), dx);
  }
  int values[3];
  for (int c = 0; c < 3; ++c) {
    const double value = cubic(across[c][0], across[c][1], across[c][2], across[c][3], dy);
    values[c] = static_cast<int>(value < 0.0 ? 0.0 : value > 255.0 ? 255.0 : value);
  }
  return pixel_of(values[0], values[1], values[2]);
}

// A coordinate of the source: ax + by + c, in this order.
MILLRACE_HD inline double source_place(const double* m, double x, double y) {
  return product(m[0], x) + product(m[1], y) + m[2];
}

template <class Block>
MILLRACE_KERNEL void sample_picture(Block& block, const StepWork& work) {
  const AugmentStep& step = work.step;
  auto& shared = block.template shared<AugmentShared>();
  block.each([&](int thread) {
    if (thread < 8) shared.matrix[thread] = double_in(work.tables + 2 * thread);
  });
  block.each([&](int thread) {
    const double* const m = shared.matrix;  // of which a thread's registers have no room
    for_places(thread, work.width, work.height, [&](int column, int row) {
      const double x = whole_number(column) + 0.5, y = whole_number(row) + 0.5;
      double from_x = source_place(m, x, y), from_y = source_place(m + 3, x, y);
      if (step.perspective != 0) {
        const double divisor = product(m[6], x) + product(m[7], y) + 1;
        from_x /= divisor;
        from_y /= divisor;
      }
      std::uint32_t& to = work.to[row * work.width + column];
      if (has_place(work, from_x, from_y)) {
        to = step.sampling == Sampling::kBicubic ? bicubic(work, from_x, from_y)
             : step.sampling == Sampling::kBilinear
                 ? bilinear(work, from_x, from_y)
                 : work.from[static_cast<int>(from_y) * work.width + static_cast<int>(from_x)];
        return;
      }
      // Filters make 0 of coordinates that are no numbers.
      const bool is_outside = from_x < 0.0 || from_x >= work.width || from_y < 0.0 || from_y >= work.height;
      to = is_outside || step.sampling == Sampling::kNearest ? step.fill : 0;
    });
  });
}

}  // namespace millrace::kernels::cuda::augmenting
