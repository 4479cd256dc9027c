#include "kernels/cpu/resample.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/row_kernels.h"
#include "kernels/cpu/workspace.h"

namespace millrace::kernels {
namespace {

bool is_side(int side) {
  return side >= 1 && side <= kMaxSide;
}

bool fits(int first, int count, int out) {
  return first >= 0 && count >= 1 && first < out && count <= out - first;
}

void copy_rows(const ResamplePlan& plan, const U8View& source, RowSink sink) {
  const U8View window = source.crop(plan.spec.window);
  for (int y = 0; y < window.height; ++y) sink.take(sink.context, y, window.row(y));
}

template <int kChannels>
void pick_pixels(const std::vector<std::int32_t>& columns, const std::uint8_t* row, std::uint8_t* out) {
  for (const std::int32_t x : columns) {
    std::memcpy(out, row + std::ptrdiff_t{x} * kChannels, kChannels);
    out += kChannels;
  }
}

void pick_rows(const ResamplePlan& plan, const U8View& source, Workspace& workspace, RowSink sink) {
  const std::vector<std::int32_t>& columns = plan.columns->weights.start;
  const std::vector<std::int32_t>& rows = plan.rows->weights.start;
  std::uint8_t* out = workspace.ring(columns.size() * source.channels);
  for (std::size_t y = 0; y < rows.size(); ++y) {
    if (y == 0 || rows[y] != rows[y - 1]) {
      const std::uint8_t* row = source.row(rows[y]);
      if (source.channels == 1) pick_pixels<1>(columns, row, out);
      if (source.channels == 3) pick_pixels<3>(columns, row, out);
      if (source.channels == 4) pick_pixels<4>(columns, row, out);
    }
    sink.take(sink.context, static_cast<int>(y), out);
  }
}

// Runs the vertical pass over `rows`, whose quad `index` fill_quad(index, quad) makes, in a ring of just as many quads
// as one output row needs. `samples` bytes a row; place(y) says where output row `y` goes, and take(y) is called when
// it is there.
template <class FillQuad, class Place, class Take>
void filter_vertically(const RowKernels& kernels, const AxisTable& rows, int samples, std::uint8_t* ring,
                       Workspace& workspace, FillQuad&& fill_quad, Place&& place, Take&& take) {
  const std::size_t slot = quad_bytes(samples);
  std::vector<const std::uint8_t*>& quads = workspace.quads();
  quads.resize(rows.quads);
  int next = 0;
  for (int y = 0; y < rows.spec.count; ++y) {
    const auto [pair, pairs] = rows.row_steps[y];
    const int first = pair / 2, end = (pair + pairs - 1) / 2 + 1;
    for (next = std::max(next, first); next < end; ++next) fill_quad(next, ring + (next % rows.quads) * slot);
    for (int q = first; q < end; ++q) quads[q - first] = ring + (q % rows.quads) * slot;
    kernels.vertical(rows, y, quads.data(), samples, place(y));
    take(y);
  }
}

struct QuadRows {
  const std::uint8_t* row[kQuadRows];
};

// The source rows of quad `index`, from byte `offset` on. Below the last row that is needed that row stands in, with
// weights of 0.
QuadRows quad_rows(const AxisTable& rows, const U8View& source, int index, std::ptrdiff_t offset) {
  const int last = rows.weights.start.back() + rows.weights.taps - 1;
  QuadRows quad;
  for (int r = 0; r < kQuadRows; ++r)
    quad.row[r] = source.row(std::min(rows.origin + index * kQuadRows + r, last)) + offset;
  return quad;
}

void filter_columns_first(const ResamplePlan& plan, const U8View& source, Workspace& workspace, RowSink sink) {
  const RowKernels& kernels = row_kernels(workspace.target());
  const ResampleSpec& spec = plan.spec;
  const int samples = spec.window.width * spec.channels;
  const bool keeps_width = spec.source.width == spec.target.width;
  const std::ptrdiff_t offset = keeps_width ? std::ptrdiff_t{spec.window.left} * spec.channels : 0;
  std::uint8_t* out = workspace.ring(row_bytes(samples) + plan.rows->quads * quad_bytes(samples));
  const auto fill_quad = [&](int index, std::uint8_t* quad) {
    const QuadRows in = quad_rows(*plan.rows, source, index, offset);
    keeps_width ? kernels.interleave(in.row, samples, quad) : kernels.horizontal(*plan.columns, in.row, quad);
  };
  const auto place = [&](int) { return out; };
  const auto take = [&](int y) { sink.take(sink.context, y, out); };
  filter_vertically(kernels, *plan.rows, samples, out + row_bytes(samples), workspace, fill_quad, place, take);
}

// Filtered rows of the source's width gather in fours; each four goes through the horizontal pass and out.
class FourRows {
 public:
  static std::size_t bytes(const ResamplePlan& plan) { return kQuadRows * (pitch(plan) + out_pitch(plan)); }

  FourRows(const ResamplePlan& plan, const RowKernels& kernels, std::uint8_t* memory, RowSink sink)
      : plan_(plan), kernels_(kernels), sink_(sink), rows_(memory), out_(memory + kQuadRows * pitch(plan)) {}

  std::uint8_t* row(int y) const { return rows_ + (y % kQuadRows) * pitch(plan_); }

  void take(int y) {
    const int last = plan_.spec.window.height - 1;
    if (y % kQuadRows != kQuadRows - 1 && y != last) return;
    const std::uint8_t* const in[kQuadRows] = {row(0), row(1), row(2), row(3)};
    std::uint8_t* const out[kQuadRows] = {out_row(0), out_row(1), out_row(2), out_row(3)};
    kernels_.horizontal_rows(*plan_.columns, in, out);
    for (int r = 0; r <= y % kQuadRows; ++r) sink_.take(sink_.context, y - y % kQuadRows + r, out[r]);
  }

 private:
  // Room for a whole source row, and for what the vertical pass writes behind it.
  static std::size_t pitch(const ResamplePlan& plan) {
    return row_bytes(plan.spec.source.width * plan.spec.channels) + 64;
  }
  static std::size_t out_pitch(const ResamplePlan& plan) {
    return row_bytes(plan.spec.window.width * plan.spec.channels + 16);
  }
  std::uint8_t* out_row(int r) const { return out_ + r * out_pitch(plan_); }

  const ResamplePlan& plan_;
  const RowKernels& kernels_;
  RowSink sink_;
  std::uint8_t* rows_;
  std::uint8_t* out_;
};

void filter_rows_first(const ResamplePlan& plan, const U8View& source, Workspace& workspace, RowSink sink) {
  const RowKernels& kernels = row_kernels(workspace.target());
  const Box needed = needed_source(plan);
  const int samples = needed.width * plan.spec.channels;
  const std::ptrdiff_t offset = std::ptrdiff_t{needed.left} * plan.spec.channels;
  std::uint8_t* memory = workspace.ring(FourRows::bytes(plan) + plan.rows->quads * quad_bytes(samples));
  FourRows four_rows(plan, kernels, memory, sink);
  const auto fill_quad = [&](int index, std::uint8_t* quad) {
    kernels.interleave(quad_rows(*plan.rows, source, index, offset).row, samples, quad);
  };
  const auto place = [&](int y) { return four_rows.row(y) + offset; };
  const auto take = [&](int y) { four_rows.take(y); };
  filter_vertically(kernels, *plan.rows, samples, memory + FourRows::bytes(plan), workspace, fill_quad, place, take);
}

}  // namespace

bool is_valid(const ResampleSpec& spec) {
  const bool channels = spec.channels == 1 || spec.channels == 3 || spec.channels == 4;
  const bool sides = is_side(spec.source.width) && is_side(spec.source.height) && is_side(spec.target.width) &&
                     is_side(spec.target.height);
  return channels && sides && fits(spec.window.left, spec.window.width, spec.target.width) &&
         fits(spec.window.top, spec.window.height, spec.target.height);
}

bool filters_rows_first(const ResampleSpec& spec) {
  if (spec.order == PassOrder::kColumnsFirst || spec.source.width == spec.target.width) return false;
  const int lost_height = spec.source.height - spec.target.height;
  const int lost_width = spec.source.width - spec.target.width;
  return lost_height > 0 && lost_height > 2 * lost_width;
}

Box needed_source(const ResamplePlan& plan) {
  const AxisWeights& columns = plan.columns->weights;
  const AxisWeights& rows = plan.rows->weights;
  const int right = columns.start.back() + columns.taps;
  const int bottom = rows.start.back() + rows.taps;
  return {columns.start.front(), rows.start.front(), right - columns.start.front(), bottom - rows.start.front()};
}

void resample_rows(const ResamplePlan& plan, const U8View& source, Workspace& workspace, RowSink sink) {
  if (plan.spec.source == plan.spec.target) return copy_rows(plan, source, sink);
  if (plan.spec.filter == Filter::kNearest) return pick_rows(plan, source, workspace, sink);
  if (filters_rows_first(plan.spec)) return filter_rows_first(plan, source, workspace, sink);
  filter_columns_first(plan, source, workspace, sink);
}

void resample_image(const ResamplePlan& plan, const U8View& source, Workspace& workspace, const MutableU8View& out) {
  const std::size_t bytes = static_cast<std::size_t>(out.width) * out.channels;
  resample(plan, source, workspace, [&](int y, const std::uint8_t* row) { std::memcpy(out.row(y), row, bytes); });
}

}  // namespace millrace::kernels
