#include "kernels/cpu/resample.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/axis_table.h"
#include "kernels/cpu/row_resampler.h"
#include "kernels/cpu/workspace.h"

namespace millrace::kernels {
namespace {

template <int kChannels>
void pick_pixels(const std::vector<std::int32_t>& columns, const std::uint8_t* row, std::uint8_t* out) {
  for (const std::int32_t x : columns) {
    std::memcpy(out, row + std::ptrdiff_t{x} * kChannels, kChannels);
    out += kChannels;
  }
}

bool pick_rows(const ResamplePlan& plan, const U8View& source, Workspace& workspace, RowSink sink) {
  const std::vector<std::int32_t>& columns = plan.columns->weights.start;
  const std::vector<std::int32_t>& rows = plan.rows->weights.start;
  std::uint8_t* out = workspace.ring(columns.size() * source.channels);
  for (std::size_t y = 0; y < rows.size(); ++y) {
    if (workspace.limit().is_over_after(columns.size() * source.channels)) return false;
    if (y == 0 || rows[y] != rows[y - 1]) {
      const std::uint8_t* row = source.row(rows[y]);
      if (source.channels == 1) pick_pixels<1>(columns, row, out);
      if (source.channels == 3) pick_pixels<3>(columns, row, out);
      if (source.channels == 4) pick_pixels<4>(columns, row, out);
    }
    sink.take(sink.context, static_cast<int>(y), out);
  }
  return true;
}

}  // namespace

Box needed_source(const ResamplePlan& plan) {
  const AxisWeights& columns = plan.columns->weights;
  const AxisWeights& rows = plan.rows->weights;
  const int right = columns.start.back() + columns.taps;
  const int bottom = rows.start.back() + rows.taps;
  return {columns.start.front(), rows.start.front(), right - columns.start.front(), bottom - rows.start.front()};
}

bool resample_rows(const ResamplePlan& plan, const U8View& source, Workspace& workspace, RowSink sink) {
  const bool keeps_size = plan.spec.source == plan.spec.target;
  if (plan.spec.filter == Filter::kNearest && !keeps_size) return pick_rows(plan, source, workspace, sink);
  RowResampler resampler(plan, workspace, sink);
  resampler.take({source.data, source.stride}, source.height);
  return resampler.is_complete();
}

bool resample_image(const ResamplePlan& plan, const U8View& source, Workspace& workspace, const MutableU8View& out) {
  const std::size_t bytes = static_cast<std::size_t>(out.width) * out.channels;
  return resample(plan, source, workspace,
                  [&](int y, const std::uint8_t* row) { std::memcpy(out.row(y), row, bytes); });
}

}  // namespace millrace::kernels
