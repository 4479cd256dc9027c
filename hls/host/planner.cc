#include "hls/host/planner.h"

#include <algorithm>
#include <limits>

#include "hls/decoder/limits.h"
#include "hls/host/jpeg_tables.h"
#include "kernels/tensor/store_table.h"

namespace millrace::hls {
namespace {

bool is_side(int side) {
  return side >= 1 && side <= static_cast<int>(kMostSide);
}
bool are_sides(kernels::Size size) {
  return is_side(size.width) && is_side(size.height);
}

bool lies_in(const kernels::Box& box, kernels::Size size) {
  return box.left >= 0 && box.top >= 0 && box.width >= 1 && box.height >= 1 && box.left <= size.width - box.width &&
         box.top <= size.height - box.height;
}

std::uint16_t u16(int value) {
  return static_cast<std::uint16_t>(value);
}

kernels::AxisSpec columns_of(const ImageRequest& request, kernels::Filter filter) {
  return {kernels::Axis::kColumns, 3,     request.crop.width, request.resized.width, request.window.left,
          request.window.width,    filter};
}
kernels::AxisSpec rows_of(const ImageRequest& request, kernels::Filter filter) {
  return {kernels::Axis::kRows,  1,     request.crop.height, request.resized.height, request.window.top,
          request.window.height, filter};
}

}  // namespace

bool is_possible(const BatchRecipe& recipe) {
  return !recipe.store.patches;
}

Planner::Planner(const BatchRecipe& recipe) : recipe_(recipe) {
  const kernels::StoreTable table(recipe.store);
  batch_.channels = static_cast<std::uint8_t>(table.channels());
  batch_.element_bytes = static_cast<std::uint8_t>(table.element_bytes());
  batch_.interleaved = recipe.store.layout == kernels::Layout::kNhwc;
  for (int c = 0; c < table.channels(); ++c) {
    if (table.channels() == 3)
      batch_.colour[c] = static_cast<std::uint8_t>(kernels::colour_of(recipe.store.channels, c));
    std::ranges::copy(table.plane(c).values, batch_.store[c]);
  }
}

void Planner::begin(std::span<std::byte> commands, std::uint32_t most_images) {
  commands_ = CommandWriter(commands, most_images);
  images_ = 0;
  most_images_ = most_images;
  axes_.begin_batch();
}

std::string_view Planner::add(const ImageRequest& request) {
  if (images_ == most_images_) return kFull;
  Descriptor image{};
  if (const auto reason = plan(request, image); !reason.empty()) return reason;
  image.cookie = images_;
  commands_.put_descriptor(images_++, image);
  return {};
}

void Planner::finish() {
  batch_.images = images_;
  commands_.put_batch(batch_);
}

std::string_view Planner::plan(const ImageRequest& request, Descriptor& image) {
  image.kind = static_cast<std::uint8_t>(request.kind);
  switch (request.kind) {
    case Source::kJpegScan:
      return plan_scan(request, image);
    case Source::kPacked:
      return plan_packed(request, image);
    case Source::kRows:
      return plan_rows(request, image);
  }
  return "no such images on a card";
}

std::string_view Planner::plan_scan(const ImageRequest& request, Descriptor& image) {
  const auto header = kernels::jpeg::read_header(request.file_untrusted, kernels::jpeg::Chroma::kQuarter);
  if (!header) return "not a sequential Huffman-coded JPEG file of a sampling that cards have, or an odd one";
  if (const auto reason = put_geometry(request, header->size, image); !reason.empty()) return reason;
  const std::size_t before_scan = request.file_untrusted.size() - header->scan.size();
  if (const auto reason = put_source(request, before_scan, image); !reason.empty()) return reason;
  JpegTables tables{};
  if (const auto reason = put_tables(*header, tables); !reason.empty()) return reason;
  if (const auto reason = put_axes(request, image); !reason.empty()) return reason;
  const auto unit = commands_.append(std::as_bytes(std::span(&tables, 1)));
  if (!unit) return kFull;
  image.tables = *unit;
  return {};
}

std::string_view Planner::plan_packed(const ImageRequest& request, Descriptor& image) {
  if (!packed_.read(request.file_untrusted, kernels::packed::Check::kShape)) return kBrokenPacked;
  if (const auto reason = put_geometry(request, packed_.header().size, image); !reason.empty()) return reason;
  if (const auto reason = put_source(request, 0, image); !reason.empty()) return reason;
  return put_axes(request, image);
}

std::string_view Planner::plan_rows(const ImageRequest& request, Descriptor& image) {
  if (const auto reason = put_geometry(request, request.stored, image); !reason.empty()) return reason;
  const std::size_t pixels = std::size_t{image.width} * image.height, bytes = request.file_untrusted.size();
  if (bytes != pixels && bytes != 3 * pixels)
    return "rows of another size than the picture's, or not of 1 or 3 bytes a pixel";
  if (const auto reason = put_source(request, 0, image); !reason.empty()) return reason;
  return put_axes(request, image);
}

std::string_view Planner::put_source(const ImageRequest& request, std::size_t skipped, Descriptor& image) {
  const std::uint64_t begin = request.at + skipped, bytes = request.file_untrusted.size() - skipped;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (bytes == 0) return "nothing behind the header";
  if (begin > kMost || bytes > kMost - begin) return "beyond the 4 GiB that a card's buffers have";
  image.source = static_cast<std::uint32_t>(begin);
  image.source_bytes = static_cast<std::uint32_t>(bytes);
  return {};
}

std::string_view Planner::put_geometry(const ImageRequest& request, kernels::Size stored, Descriptor& image) {
  if (request.stored != kernels::Size{} && request.stored != stored)
    return "an image of another size than was announced";
  if (request.orientation != kernels::Orientation::kUpright) return "cards do not turn pictures";
  if (!are_sides(stored) || !are_sides(request.resized)) return "a side of more pixels than cards have room for";
  if (!lies_in(request.crop, stored)) return "the crop lies outside the image";
  if (!lies_in(request.window, request.resized)) return "the window does not lie in the resized picture";
  image.width = u16(stored.width);
  image.height = u16(stored.height);
  image.crop_left = u16(request.crop.left);
  image.crop_top = u16(request.crop.top);
  image.crop_width = u16(request.crop.width);
  image.crop_height = u16(request.crop.height);
  image.out_width = u16(request.window.width);
  image.out_height = u16(request.window.height);
  image.flip = request.flip == kernels::Flip::kHorizontal;
  image.grey = batch_.channels == 1;
  return put_tensor(request, image);
}

std::string_view Planner::put_tensor(const ImageRequest& request, Descriptor& image) {
  if (request.tensor % kUnit != 0 || request.tensor / kUnit > std::numeric_limits<std::uint32_t>::max())
    return "a tensor that does not begin at a multiple of 64 bytes";
  image.tensor = static_cast<std::uint32_t>(request.tensor / kUnit);
  image.tensor_bytes = std::uint32_t{image.out_width} * image.out_height * batch_.channels * batch_.element_bytes;
  return {};
}

std::string_view Planner::put_axes(const ImageRequest& request, Descriptor& image) {
  const kernels::AxisSpec columns = columns_of(request, recipe_.filter), rows = rows_of(request, recipe_.filter);
  image.rows_first = kernels::filters_rows_first({.channels = 3,
                                                  .source = {request.crop.width, request.crop.height},
                                                  .target = request.resized,
                                                  .window = request.window,
                                                  .filter = recipe_.filter,
                                                  .order = recipe_.order});
  const int column_taps = axes_.taps(columns), row_taps = axes_.taps(rows);
  if (std::max(column_taps, row_taps) > static_cast<int>(kMostTaps))
    return "too much larger than its tensor for a card's filters";
  const int row = image.rows_first != 0 ? image.crop_width : image.out_width;
  if (row * row_taps > static_cast<int>(kRingPixels)) return "no room in the card's memories for so large a resampling";
  const auto columns_place = axes_.place(columns, commands_), rows_place = axes_.place(rows, commands_);
  if (!columns_place || !rows_place) return kFull;
  image.columns = columns_place->unit;
  image.rows = rows_place->unit;
  image.column_taps = static_cast<std::uint8_t>(column_taps);
  image.row_taps = static_cast<std::uint8_t>(row_taps);
  return {};
}

}  // namespace millrace::hls
