// Coordinates and filters are those of Pillow's libImaging/Geometry.c.
#include "kernels/augment/geometry.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace millrace::kernels::augment {
namespace {

// Whether coordinates fit 16 bits before the point.
bool fits_at(const std::array<double, 8>& m, int x, int y) {
  return std::abs(x * m[0] + y * m[1] + m[2]) < 32768.0 && std::abs(x * m[3] + y * m[4] + m[5]) < 32768.0;
}

// What all transforms go through: rows that begin as `fill`, with a look at the time.
class Rows {
 public:
  Rows(const Kernels& kernels, const Operation& operation, const Pixels& in, TimeLimit& limit, const Planes& out)
      : kernels_(kernels), operation_(operation), in_(in), limit_(limit), out_(out), m_(operation.matrix) {}

  // No rotation, no shear: one table of columns. Coordinates are summed up, as Pillow does.
  bool scale() const {
    int columns[kLongestSide];
    int first = in_.width, last = 0;
    bool is_run = true;
    double x = m_[2] + m_[0] * 0.5, y = m_[5] + m_[4] * 0.5;
    for (int column = 0; column < in_.width; ++column, x += m_[0]) {
      if (!(x >= 0.0 && x < in_.width)) continue;
      columns[column] = static_cast<int>(x);
      first = std::min(first, column);
      last = column + 1;
      is_run = is_run && columns[column] - columns[first] == column - first;
    }
    return each(3, [&](std::size_t at, int) {
      const double from_y = y;
      y += m_[4];
      if (!(from_y >= 0.0 && from_y < in_.height) || first >= last) return;
      const Byte* const row = in_.data + 3 * row_at(static_cast<int>(from_y));
      if (is_run) return copy_run(row + 3 * columns[first], at, first, last);
      for (int column = first; column < last; ++column) copy(row + 3 * columns[column], at, column);
    });
  }

  bool affine_fixed() const {
    FixedRow row{to_fixed(m_[2] + m_[0] * 0.5 + m_[1] * 0.5), to_fixed(m_[5] + m_[3] * 0.5 + m_[4] * 0.5),
                 to_fixed(m_[0]), to_fixed(m_[3])};
    const std::uint32_t x_by_row = to_fixed(m_[1]), y_by_row = to_fixed(m_[4]);
    const bool is_run = row.x_step == std::uint32_t{1} << 16 && row.y_step == 0;
    return each(4, [&](std::size_t at, int) {
      if (is_run) {
        copy_shifted(static_cast<std::int32_t>(row.x) >> 16, static_cast<std::int32_t>(row.y) >> 16, at);
      } else {
        kernels_.copy_fixed(row, in_, out_, at);
      }
      row.x += x_by_row;
      row.y += y_by_row;
    });
  }

  // Coordinates too large for fixed-point: doubles, summed up.
  bool affine_summed() const {
    double row_x = m_[2] + m_[1] * 0.5 + m_[0] * 0.5, row_y = m_[5] + m_[4] * 0.5 + m_[3] * 0.5;
    return each(8, [&](std::size_t at, int) {
      double x = row_x, y = row_y;
      for (int column = 0; column < in_.width; ++column, x += m_[0], y += m_[3]) {
        if (x >= 0.0 && x < in_.width && y >= 0.0 && y < in_.height) {
          copy(in_.data + 3 * (row_at(static_cast<int>(y)) + static_cast<std::size_t>(x)), at, column);
        }
      }
      row_x += m_[1];
      row_y += m_[4];
    });
  }

  bool sample() const {
    const int work = operation_.sampling == Sampling::kBicubic ? 24 : 8;
    return each(work, [&](std::size_t at, int y) { kernels_.sample(operation_, in_, y, out_, at); });
  }

 private:
  std::size_t row_at(int y) const { return static_cast<std::size_t>(y) * static_cast<std::size_t>(in_.width); }

  template <class Function>
  bool each(int work, Function function) const {
    for (int y = 0; y < in_.height; ++y) {
      if (limit_.is_over_after(static_cast<std::uint64_t>(in_.width) * static_cast<std::uint64_t>(work))) return false;
      const std::size_t at = row_at(y);
      for (std::size_t c = 0; c < 3; ++c) {
        std::memset(out_.plane[c] + at, operation_.fill[c], static_cast<std::size_t>(in_.width));
      }
      function(at, y);
    }
    return true;
  }

  void copy(const Byte* pixel, std::size_t at, int column) const {
    for (std::size_t c = 0; c < 3; ++c) out_.plane[c][at + static_cast<std::size_t>(column)] = pixel[c];
  }

  // To columns from `first` to before `last`.
  void copy_run(const Byte* pixels, std::size_t at, int first, int last) const {
    kernels_.split(pixels, static_cast<std::size_t>(last - first), out_, at + static_cast<std::size_t>(first));
  }

  // A row that begins at column `x` of row `y`, inside the picture or not.
  void copy_shifted(int x, int y, std::size_t at) const {
    const int first = std::max(-x, 0), last = std::min(in_.width - x, in_.width);
    if (y < 0 || y >= in_.height || first >= last) return;
    copy_run(in_.data + 3 * (row_at(y) + static_cast<std::size_t>(first + x)), at, first, last);
  }

  const Kernels& kernels_;
  const Operation& operation_;
  const Pixels& in_;
  TimeLimit& limit_;
  const Planes& out_;
  const std::array<double, 8>& m_;
};

constexpr int kTile = 16;
typedef Byte Tile __attribute__((vector_size(kTile)));

// Four times the bytes of two rows that are half the tile apart become pairs, side by side: each byte's row number
// moves into its column number bit by bit.
void transpose_tile(const Byte* in, std::ptrdiff_t stride, Byte* out, std::ptrdiff_t out_stride) {
  Tile rows[kTile], pairs[kTile];
  for (int y = 0; y < kTile; ++y) std::memcpy(&rows[y], in + y * stride, kTile);
  for (int bit = 0; bit < 4; ++bit) {
    for (int y = 0; y < kTile / 2; ++y) {
      const Tile a = rows[y], b = rows[y + kTile / 2];
      pairs[2 * y] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      pairs[2 * y + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
    std::memcpy(rows, pairs, sizeof rows);
  }
  for (int x = 0; x < kTile; ++x) std::memcpy(out + x * out_stride, &rows[x], kTile);
}

void transpose_band(const Byte* in, std::ptrdiff_t stride, Size size, Byte* out, std::ptrdiff_t out_stride) {
  const int whole_width = size.width / kTile * kTile, whole_height = size.height / kTile * kTile;
  const auto at = [&](int x, int y) { return in + y * stride + x; };
  const auto to = [&](int x, int y) { return out + x * out_stride + y; };
  for (int y = 0; y < whole_height; y += kTile) {
    for (int x = 0; x < whole_width; x += kTile) transpose_tile(at(x, y), stride, to(x, y), out_stride);
  }
  for (int y = 0; y < size.height; ++y) {
    for (int x = y < whole_height ? whole_width : 0; x < size.width; ++x) *to(x, y) = *at(x, y);
  }
}

}  // namespace

bool transpose(const Byte* in, std::ptrdiff_t stride, Size size, TimeLimit& limit, Byte* out,
               std::ptrdiff_t out_stride) {
  for (int y = 0; y < size.height; y += kTile) {
    const Size band{size.width, std::min(kTile, size.height - y)};
    if (limit.is_over_after(static_cast<std::uint64_t>(band.width * band.height))) return false;
    transpose_band(in + y * stride, stride, band, out + y, out_stride);
  }
  return true;
}

bool turn(const Kernels& kernels, const Planes& in, Size size, int turns, TimeLimit& limit, const Planes& out) {
  const std::ptrdiff_t width = size.width, height = size.height;
  for (int c = 0; c < 3; ++c) {
    const Byte* const from = in.plane[c];
    Byte* const to = out.plane[c];
    if (turns == 2) {
      const auto count = static_cast<std::size_t>(width * height);
      if (limit.is_over_after(count)) return false;
      kernels.mirror(from, count, to);
    } else if (turns == 1) {
      if (!transpose(from, width, size, limit, to + (width - 1) * height, -height)) return false;
    } else {
      if (!transpose(from + (height - 1) * width, -width, size, limit, to, height)) return false;
    }
  }
  return true;
}

std::uint32_t to_fixed(double value) {
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(std::floor(value * 65536.0 + 0.5)));
}

bool fits_fixed(const Operation& operation, Size size) {
  const auto& m = operation.matrix;
  return fits_at(m, 0, 0) && fits_at(m, size.width, size.height) && fits_at(m, 0, size.height) &&
         fits_at(m, size.width, 0);
}

bool moves_whole_pixels(const Operation& operation) {
  const auto& m = operation.matrix;
  return operation.step == Step::kAffine && m[0] == 1 && m[1] == 0 && m[3] == 0 && m[4] == 1 &&
         m[2] == std::floor(m[2]) && m[5] == std::floor(m[5]);
}

bool shift(const Operation& operation, const Planes& in, Size size, TimeLimit& limit, const Planes& out) {
  const auto side = [](double offset, int length) {
    return static_cast<int>(std::clamp<double>(offset, -length, length));
  };
  const int x = side(operation.matrix[2], size.width), y = side(operation.matrix[5], size.height);
  const int first = std::max(-x, 0), last = std::min(size.width - x, size.width);
  const auto width = static_cast<std::size_t>(size.width), left = static_cast<std::size_t>(first);
  const auto count = static_cast<std::size_t>(last - first), right = static_cast<std::size_t>(last);
  for (std::size_t c = 0; c < 3; ++c) {
    const Byte fill = operation.fill[c];
    for (int row = 0; row < size.height; ++row) {
      if (limit.is_over_after(width)) return false;
      Byte* const to = out.plane[c] + static_cast<std::size_t>(row) * width;
      const int from = row + y;
      if (from < 0 || from >= size.height) {
        std::memset(to, fill, width);
        continue;
      }
      std::memset(to, fill, left);
      std::memcpy(to + left, in.plane[c] + static_cast<std::size_t>(from) * width + left + x, count);
      std::memset(to + right, fill, width - right);
    }
  }
  return true;
}

bool transform(const Kernels& kernels, const Operation& operation, Size size, TimeLimit& limit, const Byte* pixels,
               const Planes& out) {
  const Pixels in{pixels, size.width, size.height};
  const Rows rows(kernels, operation, in, limit, out);
  const auto& m = operation.matrix;
  if (operation.step != Step::kAffine || operation.sampling != Sampling::kNearest) return rows.sample();
  if (m[1] == 0 && m[3] == 0) return rows.scale();
  return fits_fixed(operation, size) ? rows.affine_fixed() : rows.affine_summed();
}

}  // namespace millrace::kernels::augment
