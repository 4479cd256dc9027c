#include "kernels/cuda/plan/view_plan.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/plan/weight_table.h"
#include "kernels/jpeg/seek_index.h"

namespace millrace::kernels::cuda {
namespace {

bool is_side(int side) {
  return side >= 1 && side <= kMostTensorSide;
}

bool lies_in(const Box& box, Size size) {
  return box.left >= 0 && box.top >= 0 && box.width >= 1 && box.height >= 1 && box.left <= size.width - box.width &&
         box.top <= size.height - box.height;
}

bool divides(const Patches& patches, Size size) {
  const bool sides =
      is_side(patches.width) && is_side(patches.height) && is_side(patches.merge) && is_side(patches.temporal);
  return sides && size.width % (std::int64_t{patches.width} * patches.merge) == 0 &&
         size.height % (std::int64_t{patches.height} * patches.merge) == 0;
}

std::string_view put_window(const ViewRequest& view, Orientation orientation, ImageJob& job) {
  if (view.resized == Size{} && view.window == Box{}) return {};
  const Box& window = view.window;
  if (!is_side(view.resized.width) || !is_side(view.resized.height) || !lies_in(window, view.resized) ||
      Size{window.width, window.height} != view.size)
    return "the window does not lie in the resized picture, or is not the tensor's size";
  job.resized_width = static_cast<std::uint16_t>(view.resized.width);
  job.resized_height = static_cast<std::uint16_t>(view.resized.height);
  job.window_left = static_cast<std::uint16_t>(window.left);
  job.window_top = static_cast<std::uint16_t>(window.top);
  if (swaps_sides(orientation)) {
    std::swap(job.resized_width, job.resized_height);
    std::swap(job.window_left, job.window_top);
  }
  return {};
}

// Of a table, at most: known before it is computed.
std::size_t weights_of(int in, int out, int count, Filter filter) {
  const double scale = std::max(1.0, static_cast<double>(in) / out);
  const double taps = filter == Filter::kNearest ? 1 : std::min<double>(2 * support_of(filter) * scale + 2, in);
  return static_cast<std::size_t>(count * (taps + 1)) + 1;
}

std::string_view put_weights(std::size_t most, ImageJob& job, std::vector<std::int32_t>& tables) {
  job.column_weights = job.row_weights = kComputed;
  if (is_computed(job.filter)) return {};
  const bool whole = job.resized_width == 0;
  const StoredSides sides = stored_sides(job);
  const int width = whole ? sides.columns : job.resized_width;
  const int height = whole ? sides.rows : job.resized_height;
  const std::size_t wanted = weights_of(job.crop_width, width, sides.columns, job.filter) +
                             weights_of(job.crop_height, height, sides.rows, job.filter);
  if (wanted > most) return "larger tables of weights than an image may have";
  job.column_weights = append_weight_table(
      {Axis::kColumns, 3, job.crop_width, width, job.window_left, sides.columns, job.filter}, tables);
  job.row_weights =
      append_weight_table({Axis::kRows, 1, job.crop_height, height, job.window_top, sides.rows, job.filter}, tables);
  return {};
}

Span around(const Span& a, const Span& b) {
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

}  // namespace

std::uint8_t turn_of(Orientation orientation) {
  const Point first = stored_point({0, 0}, {2, 2}, orientation);
  return static_cast<std::uint8_t>((first.x != 0 ? kMirrorsColumns : 0) | (first.y != 0 ? kMirrorsRows : 0) |
                                   (swaps_sides(orientation) ? kSwapsSides : 0));
}

void put_frame(const jpeg::Header& header, ImageJob& job) {
  const jpeg::SeekGrid grid = jpeg::seek_grid(header);
  job.width = static_cast<std::uint16_t>(header.size.width);
  job.height = static_cast<std::uint16_t>(header.size.height);
  job.mcu_columns = static_cast<std::uint16_t>(grid.columns);
  job.mcu_rows = static_cast<std::uint16_t>(grid.rows);
  job.components = static_cast<std::uint8_t>(header.components);
  job.blocks_in_mcu = static_cast<std::uint8_t>(grid.blocks_in_mcu);
  for (std::size_t i = 0; i < static_cast<std::size_t>(header.components); ++i) {
    job.component[i].h = header.component[i].h;
    job.component[i].v = header.component[i].v;
  }
}

bool is_possible(Size size) {
  return is_side(size.width) && is_side(size.height);
}

bool is_storable(const StoreSpec& store, Size size) {
  return is_possible(size) && (!store.patches || divides(*store.patches, size));
}

std::string_view put_view(const ViewRequest& view, Orientation orientation, std::size_t most_weights, ImageJob& job,
                          std::vector<std::int32_t>& weights) {
  const Size stored{job.width, job.height};
  if (!lies_in(view.crop, oriented(stored, orientation))) return "the crop lies outside the image";
  const Box crop = stored_box(view.crop, stored, orientation);
  job.crop_left = static_cast<std::uint16_t>(crop.left);
  job.crop_top = static_cast<std::uint16_t>(crop.top);
  job.crop_width = static_cast<std::uint16_t>(crop.width);
  job.crop_height = static_cast<std::uint16_t>(crop.height);
  job.turn = turn_of(orientation);
  job.flip = view.flip == Flip::kHorizontal;
  job.tensor_width = static_cast<std::uint16_t>(view.size.width);
  job.tensor_height = static_cast<std::uint16_t>(view.size.height);
  job.filter = *view.filter;
  const std::string_view reason = put_window(view, orientation, job);
  return reason.empty() ? put_weights(most_weights, job, weights) : reason;
}

McuBox around(const McuBox& a, const McuBox& b) {
  return {around(a.rows, b.rows), around(a.columns, b.columns)};
}

bool holds(const McuBox& box, const McuBox& other) {
  return box.rows.begin <= other.rows.begin && other.rows.end <= box.rows.end &&
         box.columns.begin <= other.columns.begin && other.columns.end <= box.columns.end;
}

}  // namespace millrace::kernels::cuda
