#include "kernels/cuda/plan/start_points.h"

#include <algorithm>

#include "kernels/jpeg/restart_intervals.h"
#include "kernels/jpeg/unstuff.h"

namespace millrace::kernels::cuda {
namespace {

using jpeg::McuWindow;
using jpeg::SeekPlace;

// Whether one of the MCUs first .. end - 1 lies in the window.
bool meets(const McuWindow& window, int columns, std::int64_t first, std::int64_t end) {
  const auto clipped_first = std::max(first, std::int64_t{window.lines.begin} * columns);
  const auto clipped_end = std::min(end, std::int64_t{window.lines.end} * columns);
  if (clipped_first >= clipped_end) return false;
  const std::int64_t line = clipped_first / columns, column = clipped_first % columns;
  // Behind the window's last column of its line, the next line's first one may still be reached.
  const std::int64_t next = (column < window.columns.end ? line : line + 1) * columns + window.columns.begin;
  return std::max(next, clipped_first) < clipped_end;
}

std::int64_t end_of(const McuWindow& window, int columns) {
  return std::int64_t{window.lines.end - 1} * columns + window.columns.end;
}

Segment between(const SeekPlace& begin, const SeekPlace& end) {
  Segment segment{.first_bit = static_cast<std::uint32_t>(begin.bit),
                  .end_bit = static_cast<std::uint32_t>(end.bit),
                  .first_mcu = static_cast<std::uint32_t>(begin.mcu),
                  .mcus = static_cast<std::uint32_t>(end.mcu - begin.mcu),
                  .predictors = {},
                  .end_predictors = {},
                  .checked = kEndExact};
  for (std::size_t i = 0; i < kMostComponents; ++i) {
    segment.predictors[i] = static_cast<std::int16_t>(begin.predictors[i]);
    segment.end_predictors[i] = static_cast<std::int16_t>(end.predictors[i]);
  }
  return segment;
}

}  // namespace

bool append_indexed(const jpeg::SeekIndex& index, const McuWindow& window, std::vector<Segment>& segments) {
  const auto places = index.places();
  const int columns = index.grid().columns;
  const std::int64_t end = end_of(window, columns);
  if (places.back().mcu < end || places.back().bit > UINT32_MAX) return false;
  const std::int64_t begin = std::int64_t{window.lines.begin} * columns + window.columns.begin;
  auto place = std::upper_bound(places.begin(), places.end(), begin,
                                [](std::int64_t mcu, const SeekPlace& behind) { return mcu < behind.mcu; });
  for (--place; place->mcu < end; ++place) {
    if (meets(window, columns, place->mcu, place[1].mcu)) segments.push_back(between(place[0], place[1]));
  }
  return true;
}

bool append_intervals(jpeg::FileBytes scan_untrusted, const jpeg::SeekGrid& grid, std::int64_t interval,
                      const McuWindow& window, std::vector<Segment>& segments) {
  const std::int64_t end = std::min(end_of(window, grid.columns), grid.mcus());
  std::size_t byte = 0;
  for (std::int64_t mcu = 0, restart = 0; mcu < end; mcu += interval, ++restart) {
    const jpeg::MarkerPlace marker = jpeg::find_marker(scan_untrusted.subspan(byte), best_target());
    const std::int64_t mcus = std::min(interval, grid.mcus() - mcu);
    const std::int64_t behind = mcu + mcus;
    if (behind < end && marker.code != jpeg::restart_before(restart + 1)) return false;
    if (meets(window, grid.columns, mcu, behind))
      segments.push_back({.first_bit = static_cast<std::uint32_t>(8 * byte),
                          .end_bit = static_cast<std::uint32_t>(8 * (byte + marker.at)),
                          .first_mcu = static_cast<std::uint32_t>(mcu),
                          .mcus = static_cast<std::uint32_t>(mcus),
                          .predictors = {},
                          .end_predictors = {},
                          .checked = behind <= end && behind < grid.mcus() ? kEndPadded : kEndUnknown});
    byte += marker.at + 2;
  }
  return true;
}

}  // namespace millrace::kernels::cuda
