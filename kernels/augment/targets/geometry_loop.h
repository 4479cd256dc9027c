// Coordinates and filters of Pillow's libImaging/Geometry.c, pixel by pixel, for a file that has defined
// MILLRACE_AUGMENT_TARGET. Included once by each such file, in its anonymous namespace.
#pragma once

MILLRACE_AUGMENT_TARGET inline bool has(const Pixels& in, double x, double y) {
  return x >= 0.0 && x < in.width && y >= 0.0 && y < in.height;
}

// Coordinates that are no numbers, as 0 / 0 of a perspective, are not outside either: filters make 0 of them.
MILLRACE_AUGMENT_TARGET inline bool is_nowhere(const Pixels& in, double x, double y) {
  const bool is_outside = x < 0.0 || x >= in.width || y < 0.0 || y >= in.height;
  return !is_outside && !has(in, x, y);
}

MILLRACE_AUGMENT_TARGET inline const Byte* pixel_at(const Pixels& in, int x, int y) {
  return in.data + 3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(in.width) + static_cast<std::size_t>(x));
}

MILLRACE_AUGMENT_TARGET inline void copy_pixel(const Byte* pixel, const Planes& out, std::size_t to) {
  for (int c = 0; c < 3; ++c) out.plane[c][to] = pixel[c];
}

MILLRACE_AUGMENT_TARGET void copy_fixed(const FixedRow& row, const Pixels& in, const Planes& out, std::size_t at) {
  const auto width = static_cast<std::uint32_t>(in.width), height = static_cast<std::uint32_t>(in.height);
  std::uint32_t x = row.x, y = row.y;
  for (std::uint32_t column = 0; column < width; ++column, x += row.x_step, y += row.y_step) {
    // A negative one becomes one that is too large.
    const auto from_x = static_cast<std::uint32_t>(static_cast<std::int32_t>(x) >> 16);
    const auto from_y = static_cast<std::uint32_t>(static_cast<std::int32_t>(y) >> 16);
    if (from_x < width && from_y < height) {
      copy_pixel(pixel_at(in, static_cast<int>(from_x), static_cast<int>(from_y)), out, at + column);
    }
  }
}

MILLRACE_AUGMENT_TARGET inline void nearest(const Pixels& in, double x, double y, const Planes& out, std::size_t to) {
  copy_pixel(pixel_at(in, static_cast<int>(x), static_cast<int>(y)), out, to);
}

MILLRACE_AUGMENT_TARGET inline void bilinear(const Pixels& in, double x, double y, const Planes& out, std::size_t to) {
  x -= 0.5;
  y -= 0.5;
  const int left = static_cast<int>(std::floor(x)), top = static_cast<int>(std::floor(y));
  const double dx = x - left, dy = y - top;
  const int x0 = std::max(left, 0), x1 = std::min(left + 1, in.width - 1);
  const int y0 = std::max(top, 0), y1 = std::min(top + 1, in.height - 1);
  const Byte* const above = pixel_at(in, 0, y0);
  const Byte* const below = pixel_at(in, 0, y1);
  for (int c = 0; c < 3; ++c) {
    const int from = 3 * x0 + c, past = 3 * x1 + c;
    const double a = above[from] + (above[past] - above[from]) * dx;
    const double b = below[from] + (below[past] - below[from]) * dx;
    out.plane[c][to] = static_cast<Byte>(a + (b - a) * dy);
  }
}

MILLRACE_AUGMENT_TARGET inline double cubic(double v0, double v1, double v2, double v3, double d) {
  const double linear = -v0 + v2, square = 2 * (v0 - v1) + v2 - v3, cube = -v0 + v1 - v2 + v3;
  return v1 + d * (linear + d * (square + d * cube));
}

MILLRACE_AUGMENT_TARGET inline void bicubic(const Pixels& in, double x, double y, const Planes& out, std::size_t to) {
  x -= 0.5;
  y -= 0.5;
  const int left = static_cast<int>(std::floor(x)), top = static_cast<int>(std::floor(y));
  const double dx = x - left, dy = y - top;
  int columns[4];
  for (int i = 0; i < 4; ++i) columns[i] = 3 * std::clamp(left - 1 + i, 0, in.width - 1);
  for (int c = 0; c < 3; ++c) {
    double across[4];
    for (int i = 0; i < 4; ++i) {
      const Byte* const row = pixel_at(in, 0, std::clamp(top - 1 + i, 0, in.height - 1)) + c;
      across[i] = cubic(row[columns[0]], row[columns[1]], row[columns[2]], row[columns[3]], dx);
    }
    const double value = cubic(across[0], across[1], across[2], across[3], dy);
    out.plane[c][to] = static_cast<Byte>(std::clamp(value, 0.0, 255.0));
  }
}

template <class Filter>
MILLRACE_AUGMENT_TARGET inline void sample_with(Filter filter, const Operation& operation, const Pixels& in, int row,
                                                const Planes& out, std::size_t at) {
  const auto& m = operation.matrix;
  const double y = row + 0.5;
  for (int column = 0; column < in.width; ++column) {
    const double x = column + 0.5;
    double from_x = m[0] * x + m[1] * y + m[2], from_y = m[3] * x + m[4] * y + m[5];
    if (operation.step == Step::kPerspective) {
      const double divisor = m[6] * x + m[7] * y + 1;
      from_x /= divisor;
      from_y /= divisor;
    }
    const std::size_t to = at + static_cast<std::size_t>(column);
    if (has(in, from_x, from_y)) {
      filter(in, from_x, from_y, out, to);
    } else if (operation.sampling != Sampling::kNearest && is_nowhere(in, from_x, from_y)) {
      for (Byte* const plane : out.plane) plane[to] = 0;
    }
  }
}

MILLRACE_AUGMENT_TARGET void sample(const Operation& operation, const Pixels& in, int y, const Planes& out,
                                    std::size_t at) {
  if (operation.sampling == Sampling::kBicubic) return sample_with(bicubic, operation, in, y, out, at);
  if (operation.sampling == Sampling::kBilinear) return sample_with(bilinear, operation, in, y, out, at);
  sample_with(nearest, operation, in, y, out, at);
}
