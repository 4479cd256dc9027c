#include "kernels/cpu/resample.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/axis_table.h"
#include "kernels/cpu/row_resampler.h"
#include "kernels/cpu/workspace.h"

namespace millrace::kernels {
namespace {

bool is_side(int side) {
  return side >= 1 && side <= kMaxSide;
}

bool fits(int first, int count, int out) {
  return first >= 0 && count >= 1 && first < out && count <= out - first;
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
  const bool keeps_size = plan.spec.source == plan.spec.target;
  if (plan.spec.filter == Filter::kNearest && !keeps_size) return pick_rows(plan, source, workspace, sink);
  RowResampler resampler(plan, workspace, sink);
  resampler.take({source.data, source.stride}, source.height);
}

void resample_image(const ResamplePlan& plan, const U8View& source, Workspace& workspace, const MutableU8View& out) {
  const std::size_t bytes = static_cast<std::size_t>(out.width) * out.channels;
  resample(plan, source, workspace, [&](int y, const std::uint8_t* row) { std::memcpy(out.row(y), row, bytes); });
}

}  // namespace millrace::kernels
