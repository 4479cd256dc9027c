#include "daemon/backend/cpu/making/padding.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace millrace {
namespace {

constexpr int kRgb = 3;

// Which of `count` pixels stands at `position`, which may lie beyond them. nullopt: the fill.
std::optional<std::int64_t> source_of(std::int64_t position, std::int64_t count, Pad::Mode mode) {
  if (position >= 0 && position < count) return position;
  const auto wrapped = [&](std::int64_t period) { return (position % period + period) % period; };
  switch (mode) {
    case Pad::Mode::kConstant:
      return std::nullopt;
    case Pad::Mode::kEdge:
      return position < 0 ? 0 : count - 1;
    case Pad::Mode::kReflect: {
      if (count == 1) return 0;
      const std::int64_t at = wrapped(2 * (count - 1));
      return at < count ? at : 2 * (count - 1) - at;
    }
    case Pad::Mode::kSymmetric: {
      const std::int64_t at = wrapped(2 * count);
      return at < count ? at : 2 * count - 1 - at;
    }
  }
  return std::nullopt;
}

// Where the output's columns come from, counted in what is flipped already.
struct Columns {
  std::int64_t canvas_left, window_left, resized;
};

Columns columns_of(const SampleGeometry& geometry) {
  const std::int64_t resized = geometry.resized.width;
  const Box &canvas = *geometry.canvas, &window = geometry.window;
  if (!geometry.flip) return {canvas.left, window.left, resized};
  return {resized - (std::int64_t{canvas.left} + canvas.width), resized - (std::int64_t{window.left} + window.width),
          resized};
}

void fill_row(const Fill& fill, int from, int to, std::uint8_t* row) {
  for (int x = from; x < to; ++x) std::copy(fill.begin(), fill.end(), row + std::ptrdiff_t{x} * kRgb);
}

}  // namespace

bool pad_picture(const kernels::U8View& inner, const Pad& pad, const SampleGeometry& geometry,
                 kernels::TimeLimit& limit, const kernels::MutableU8View& picture) {
  const Columns columns = columns_of(geometry);
  const auto column_of = [&](int x) { return source_of(columns.canvas_left + x, columns.resized, pad.mode); };
  // The output's columns from `begin` to `end` are the image's own, one after the other.
  const auto within = [&](std::int64_t x) { return static_cast<int>(std::clamp<std::int64_t>(x, 0, picture.width)); };
  const int begin = within(-columns.canvas_left);
  const int end = std::max(begin, within(columns.resized - columns.canvas_left));
  for (int y = 0; y < picture.height; ++y) {
    if (limit.is_over_after(static_cast<std::uint64_t>(picture.width))) return false;
    std::uint8_t* const row = picture.row(y);
    const std::optional<std::int64_t> from =
        source_of(std::int64_t{geometry.canvas->top} + y, geometry.resized.height, pad.mode);
    if (!from || (begin == end && pad.mode == Pad::Mode::kConstant)) {
      fill_row(pad.fill, 0, picture.width, row);
      continue;
    }
    const std::uint8_t* const source = inner.row(static_cast<int>(*from - geometry.window.top));
    const auto copy_column = [&](int x) {
      const std::int64_t at = *column_of(x) - columns.window_left;
      std::memcpy(row + std::ptrdiff_t{x} * kRgb, source + at * kRgb, kRgb);
    };
    if (begin < end)
      std::memcpy(row + std::ptrdiff_t{begin} * kRgb,
                  source + (columns.canvas_left + begin - columns.window_left) * kRgb,
                  static_cast<std::size_t>(end - begin) * kRgb);
    if (pad.mode == Pad::Mode::kConstant) {
      fill_row(pad.fill, 0, begin, row);
      fill_row(pad.fill, end, picture.width, row);
    } else {
      for (int x = 0; x < begin; ++x) copy_column(x);
      for (int x = end; x < picture.width; ++x) copy_column(x);
    }
  }
  return true;
}

}  // namespace millrace
