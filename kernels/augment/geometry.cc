// Coordinates and filters are those of Pillow's libImaging/Geometry.c.
#include "kernels/augment/geometry.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace millrace::kernels::augment {
namespace {

struct Source {
  Planes planes;
  int width, height;

  bool has(double x, double y) const { return x >= 0.0 && x < width && y >= 0.0 && y < height; }
  std::size_t at(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x);
  }
};

void copy_pixel(const Source& source, std::size_t from, const Planes& out, std::size_t to) {
  for (int c = 0; c < 3; ++c) out.plane[c][to] = source.planes.plane[c][from];
}

void fill_row(const Operation& operation, std::size_t at, int width, const Planes& out) {
  for (int c = 0; c < 3; ++c) {
    std::memset(out.plane[c] + at, operation.fill[static_cast<std::size_t>(c)], static_cast<std::size_t>(width));
  }
}

// Nearest: negative coordinates are outside, others lose their fraction.
void nearest(const Source& source, double x, double y, const Planes& out, std::size_t to) {
  if (source.has(x, y)) copy_pixel(source, source.at(static_cast<int>(x), static_cast<int>(y)), out, to);
}

void bilinear(const Source& source, double x, double y, const Planes& out, std::size_t to) {
  if (!source.has(x, y)) return;
  x -= 0.5;
  y -= 0.5;
  const int left = static_cast<int>(std::floor(x)), top = static_cast<int>(std::floor(y));
  const double dx = x - left, dy = y - top;
  const int x0 = std::max(left, 0), x1 = std::min(left + 1, source.width - 1);
  const int y0 = std::max(top, 0), y1 = top + 1 < source.height ? top + 1 : y0;
  const std::size_t upper = source.at(0, y0), lower = source.at(0, y1);
  for (int c = 0; c < 3; ++c) {
    const Byte* const above = source.planes.plane[c] + upper;
    const Byte* const below = source.planes.plane[c] + lower;
    const double a = above[x0] + (above[x1] - above[x0]) * dx;
    const double b = below[x0] + (below[x1] - below[x0]) * dx;
    out.plane[c][to] = static_cast<Byte>(a + (b - a) * dy);
  }
}

double cubic(double v0, double v1, double v2, double v3, double d) {
  const double linear = -v0 + v2, square = 2 * (v0 - v1) + v2 - v3, cube = -v0 + v1 - v2 + v3;
  return v1 + d * (linear + d * (square + d * cube));
}

void bicubic(const Source& source, double x, double y, const Planes& out, std::size_t to) {
  if (!source.has(x, y)) return;
  x -= 0.5;
  y -= 0.5;
  const int left = static_cast<int>(std::floor(x)), top = static_cast<int>(std::floor(y));
  const double dx = x - left, dy = y - top;
  std::size_t columns[4], rows[4];
  for (int i = 0; i < 4; ++i) {
    columns[i] = static_cast<std::size_t>(std::clamp(left - 1 + i, 0, source.width - 1));
    rows[i] = source.at(0, std::clamp(top - 1 + i, 0, source.height - 1));
  }
  for (int c = 0; c < 3; ++c) {
    double across[4];
    for (int i = 0; i < 4; ++i) {
      const Byte* const row = source.planes.plane[c] + rows[i];
      across[i] = cubic(row[columns[0]], row[columns[1]], row[columns[2]], row[columns[3]], dx);
    }
    const double value = cubic(across[0], across[1], across[2], across[3], dy);
    out.plane[c][to] = static_cast<Byte>(std::clamp(value, 0.0, 255.0));
  }
}

template <class Filter>
bool transform_each(const Operation& operation, const Source& source, Filter filter, TimeLimit& limit,
                    const Planes& out) {
  const auto& m = operation.matrix;
  const bool divides = operation.step == Step::kPerspective;
  for (int row = 0; row < source.height; ++row) {
    if (limit.is_over_after(static_cast<std::uint64_t>(source.width) * 8)) return false;
    const std::size_t at = source.at(0, row);
    fill_row(operation, at, source.width, out);
    const double y = row + 0.5;
    for (int column = 0; column < source.width; ++column) {
      const double x = column + 0.5;
      double from_x = m[0] * x + m[1] * y + m[2], from_y = m[3] * x + m[4] * y + m[5];
      if (divides) {
        const double divisor = m[6] * x + m[7] * y + 1;
        from_x /= divisor;
        from_y /= divisor;
      }
      filter(source, from_x, from_y, out, at + static_cast<std::size_t>(column));
    }
  }
  return true;
}

// No rotation, no shear: one table of columns. Coordinates are summed up, as Pillow does.
bool scale_nearest(const Operation& operation, const Source& source, TimeLimit& limit, const Planes& out) {
  const auto& m = operation.matrix;
  int columns[kLongestSide];
  int first = source.width, last = 0;
  bool is_run = true;
  double x = m[2] + m[0] * 0.5, y = m[5] + m[4] * 0.5;
  for (int column = 0; column < source.width; ++column, x += m[0]) {
    if (!(x >= 0.0 && x < source.width)) continue;
    columns[column] = static_cast<int>(x);
    first = std::min(first, column);
    last = column + 1;
    is_run = is_run && columns[column] - columns[first] == column - first;
  }
  for (int row = 0; row < source.height; ++row, y += m[4]) {
    if (limit.is_over_after(static_cast<std::uint64_t>(source.width) * 3)) return false;
    const std::size_t at = source.at(0, row);
    fill_row(operation, at, source.width, out);
    if (!(y >= 0.0 && y < source.height) || first >= last) continue;
    const std::size_t from = source.at(0, static_cast<int>(y));
    for (int c = 0; c < 3; ++c) {
      const Byte* const in = source.planes.plane[c] + from;
      Byte* const to = out.plane[c] + at;
      if (is_run) {
        std::memcpy(to + first, in + columns[first], static_cast<std::size_t>(last - first));
      } else {
        for (int column = first; column < last; ++column) to[column] = in[columns[column]];
      }
    }
  }
  return true;
}

std::uint32_t to_fixed(double value) {
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(std::floor(value * 65536.0 + 0.5)));
}

// Whether coordinates fit 16 bits before the point.
bool fits_fixed(const std::array<double, 8>& m, int x, int y) {
  return std::abs(x * m[0] + y * m[1] + m[2]) < 32768.0 && std::abs(x * m[3] + y * m[4] + m[5]) < 32768.0;
}

bool affine_fixed(const Operation& operation, const Source& source, TimeLimit& limit, const Planes& out) {
  const auto& m = operation.matrix;
  const std::uint32_t x_by_column = to_fixed(m[0]), y_by_column = to_fixed(m[3]);
  const std::uint32_t x_by_row = to_fixed(m[1]), y_by_row = to_fixed(m[4]);
  std::uint32_t row_x = to_fixed(m[2] + m[0] * 0.5 + m[1] * 0.5), row_y = to_fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);
  const auto width = static_cast<std::uint32_t>(source.width), height = static_cast<std::uint32_t>(source.height);
  for (int row = 0; row < source.height; ++row, row_x += x_by_row, row_y += y_by_row) {
    if (limit.is_over_after(std::uint64_t{width} * 4)) return false;
    const std::size_t at = source.at(0, row);
    fill_row(operation, at, source.width, out);
    std::uint32_t x = row_x, y = row_y;
    for (std::uint32_t column = 0; column < width; ++column, x += x_by_column, y += y_by_column) {
      // A negative one becomes one that is too large.
      const auto from_x = static_cast<std::uint32_t>(static_cast<std::int32_t>(x) >> 16);
      const auto from_y = static_cast<std::uint32_t>(static_cast<std::int32_t>(y) >> 16);
      if (from_x < width && from_y < height) {
        copy_pixel(source, static_cast<std::size_t>(from_y) * width + from_x, out, at + column);
      }
    }
  }
  return true;
}

// Coordinates too large for fixed-point: doubles, summed up.
bool affine_summed(const Operation& operation, const Source& source, TimeLimit& limit, const Planes& out) {
  const auto& m = operation.matrix;
  double row_x = m[2] + m[1] * 0.5 + m[0] * 0.5, row_y = m[5] + m[4] * 0.5 + m[3] * 0.5;
  for (int row = 0; row < source.height; ++row, row_x += m[1], row_y += m[4]) {
    if (limit.is_over_after(static_cast<std::uint64_t>(source.width) * 8)) return false;
    const std::size_t at = source.at(0, row);
    fill_row(operation, at, source.width, out);
    double x = row_x, y = row_y;
    for (int column = 0; column < source.width; ++column, x += m[0], y += m[3]) {
      nearest(source, x, y, out, at + static_cast<std::size_t>(column));
    }
  }
  return true;
}

}  // namespace

void turn(const Planes& in, Size size, int turns, const Planes& out) {
  constexpr int kTile = 16;
  const auto width = static_cast<std::size_t>(size.width), height = static_cast<std::size_t>(size.height);
  for (int c = 0; c < 3; ++c) {
    const Byte* const from = in.plane[c];
    Byte* const to = out.plane[c];
    if (turns == 2) {
      std::reverse_copy(from, from + width * height, to);
      continue;
    }
    for (std::size_t top = 0; top < height; top += kTile) {
      for (std::size_t left = 0; left < width; left += kTile) {
        const std::size_t bottom = std::min(top + kTile, height), right = std::min(left + kTile, width);
        for (std::size_t x = left; x < right; ++x) {
          Byte* const row = to + (turns == 1 ? width - 1 - x : x) * height;
          for (std::size_t y = top; y < bottom; ++y) row[turns == 1 ? y : height - 1 - y] = from[y * width + x];
        }
      }
    }
  }
}

bool transform(const Operation& operation, const Planes& in, Size size, TimeLimit& limit, const Planes& out) {
  const Source source{in, size.width, size.height};
  const auto& m = operation.matrix;
  if (operation.sampling == Sampling::kBilinear) return transform_each(operation, source, bilinear, limit, out);
  if (operation.sampling == Sampling::kBicubic) return transform_each(operation, source, bicubic, limit, out);
  if (operation.step == Step::kPerspective) return transform_each(operation, source, nearest, limit, out);
  if (m[1] == 0 && m[3] == 0) return scale_nearest(operation, source, limit, out);
  const bool is_small = fits_fixed(m, 0, 0) && fits_fixed(m, size.width, size.height) &&
                        fits_fixed(m, 0, size.height) && fits_fixed(m, size.width, 0);
  return is_small ? affine_fixed(operation, source, limit, out) : affine_summed(operation, source, limit, out);
}

}  // namespace millrace::kernels::augment
