#include "kernels/cuda/plan/plan.h"

#include <algorithm>

#include "kernels/cuda/plan/packed_groups.h"
#include "kernels/cuda/plan/start_points.h"
#include "kernels/cuda/plan/tile_plan.h"
#include "kernels/cuda/plan/weight_table.h"
#include "kernels/cuda/tokenise/tokenise_args.h"
#include "kernels/jpeg/restart_intervals.h"
#include "kernels/tensor/store_table.h"

namespace millrace::kernels::cuda {
namespace {

constexpr int kMostSide = 65535;
constexpr std::size_t kMostWeights = std::size_t{1} << 30;

bool is_side(int side) {
  return side >= 1 && side <= kMostSide;
}

bool lies_in(const Box& box, Size size) {
  return box.left >= 0 && box.top >= 0 && box.width >= 1 && box.height >= 1 && box.left <= size.width - box.width &&
         box.top <= size.height - box.height;
}

std::string_view put_crop(const ImageRequest& request, Size size, Size tensor, ImageJob& job) {
  if (!lies_in(request.crop, oriented(size, request.orientation))) return "the crop lies outside the image";
  const Box crop = stored_box(request.crop, size, request.orientation);
  job.crop_left = static_cast<std::uint16_t>(crop.left);
  job.crop_top = static_cast<std::uint16_t>(crop.top);
  job.crop_width = static_cast<std::uint16_t>(crop.width);
  job.crop_height = static_cast<std::uint16_t>(crop.height);
  job.turn = turn_of(request.orientation);
  job.flip = request.flip == Flip::kHorizontal;
  if (request.resized == Size{} && request.window == Box{}) return {};
  const Box& window = request.window;
  if (!is_side(request.resized.width) || !is_side(request.resized.height) || !lies_in(window, request.resized) ||
      Size{window.width, window.height} != tensor)
    return "the window does not lie in the resized picture, or is not the tensor's size";
  job.resized_width = static_cast<std::uint16_t>(request.resized.width);
  job.resized_height = static_cast<std::uint16_t>(request.resized.height);
  job.window_left = static_cast<std::uint16_t>(window.left);
  job.window_top = static_cast<std::uint16_t>(window.top);
  if (swaps_sides(request.orientation)) {
    std::swap(job.resized_width, job.resized_height);
    std::swap(job.window_left, job.window_top);
  }
  return {};
}

// Room for all tokens that a well-formed scan can have: two bits of data a token at least, but for three runs of zeros
// a block.
std::uint32_t token_capacity(std::uint64_t scan_bytes, std::uint64_t blocks, std::uint64_t segments) {
  const std::uint64_t most = std::min(4 * scan_bytes + 3 * blocks, 63 * blocks);
  const std::uint64_t room = segments == 0 ? most + 4 : 2 * (most + segments * kTokenPiece);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>((room + 3) / 4 * 4, UINT32_MAX - 3));
}

bool are_possible(const Patches& patches, Size size) {
  const bool sides =
      is_side(patches.width) && is_side(patches.height) && is_side(patches.merge) && is_side(patches.temporal);
  return sides && size.width % (std::int64_t{patches.width} * patches.merge) == 0 &&
         size.height % (std::int64_t{patches.height} * patches.merge) == 0;
}

PatchSpec patch_spec(const StoreSpec& store) {
  if (!store.patches) return {};
  const Patches& patches = *store.patches;
  return {static_cast<std::uint16_t>(patches.width), static_cast<std::uint16_t>(patches.height),
          static_cast<std::uint16_t>(patches.merge), static_cast<std::uint16_t>(patches.temporal)};
}

// Chroma of a quarter of the columns is libjpeg-turbo's on the CPU, which finds damage in all MCUs above a crop and in
// its rows of them.
bool is_judged_from_start(const jpeg::Header& header) {
  return header.component[0].h == 4;
}

}  // namespace

TensorSpec tensor_spec(const BatchRecipe& recipe) {
  return {static_cast<std::uint16_t>(recipe.size.width),
          static_cast<std::uint16_t>(recipe.size.height),
          recipe.filter,
          recipe.order,
          recipe.store.layout,
          recipe.store.channels,
          static_cast<std::uint8_t>(bytes_of(recipe.store.dtype)),
          recipe.fidelity,
          patch_spec(recipe.store)};
}

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

bool is_possible(const BatchRecipe& recipe) {
  return is_side(recipe.size.width) && is_side(recipe.size.height) &&
         (!recipe.store.patches || are_possible(*recipe.store.patches, recipe.size));
}

Planner::Planner(const BatchRecipe& recipe, const PlannerSettings& settings)
    : recipe_(recipe), settings_(settings), tables_(std::min(settings.table_slots, std::uint32_t{65536})) {
  const StoreTable table(recipe.store);
  plan_.spec = tensor_spec(recipe);
  plan_.tensor_bytes = table.image_bytes(recipe.size);
  plan_.table_slots = tables_.slots();
  for (int c = 0; c < table.channels(); ++c)
    plan_.store.insert(plan_.store.end(), std::begin(table.plane(c).values), std::end(table.plane(c).values));
}

void Planner::clear(std::size_t requests) {
  plan_.refusals.clear();
  plan_.requests.clear();
  plan_.jobs.clear();
  plan_.tiles.clear();
  plan_.segments.clear();
  plan_.groups.clear();
  plan_.shapes.clear();
  plan_.quants.clear();
  plan_.weights.clear();
  plan_.tokens = plan_.blocks = plan_.bytes = plan_.scans = 0;
  quants_.clear();
  tables_.begin_batch();
  const std::size_t images = std::max<std::size_t>(requests, 1);
  tiles_of_image_ = static_cast<int>((settings_.wanted_tiles + images - 1) / images);
}

const BatchPlan& Planner::plan(std::span<const ImageRequest> requests) {
  clear(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::size_t segments = plan_.segments.size(), weights = plan_.weights.size();
    plan_.refusals.push_back(add(requests[i], i));
    if (plan_.refusals.back().empty()) {
      plan_.requests.push_back(static_cast<std::uint32_t>(i));
      continue;
    }
    plan_.segments.resize(segments);
    plan_.weights.resize(weights);
  }
  plan_.new_tables = tables_.new_tables();
  plan_.table_runs = tables_.runs();
  return plan_;
}

// What was appended to segments and weights for an image that is refused goes again; tiles come last.
std::string_view Planner::add(const ImageRequest& request, std::uint64_t tensor) {
  const bool is_packed = request.kind == ImageKind::kPacked;
  const auto of_file = is_packed ? std::nullopt : jpeg::read_header(request.file_untrusted, jpeg::Chroma::kQuarter);
  const jpeg::Header* const header = is_packed ? read_packed(request) : of_file ? &*of_file : nullptr;
  if (header == nullptr && is_packed) return kBrokenPacked;
  if (header == nullptr)
    return "not a sequential Huffman-coded JPEG file of a sampling that the kernels have, or an odd one";
  if ((is_packed ? request.file_untrusted : header->scan).size() > std::min(settings_.most_scan_bytes, kMostScanBytes))
    return "too large a file";
  if (request.stored != Size{} && request.stored != header->size) return kAnotherSize;
  ImageJob job{};
  put_frame(*header, job);
  if (const auto reason = is_packed ? "" : add_scan(request, *header, job); !reason.empty()) return reason;
  job.output = tensor * plan_.tensor_bytes;
  if (const auto reason = put_crop(request, header->size, recipe_.size, job); !reason.empty()) return reason;
  if (const auto reason = add_quants(*header, job); !reason.empty()) return reason;
  if (const auto reason = is_packed ? "" : add_tables(*header, job); !reason.empty()) return reason;
  add_weights(job);
  if (plan_.weights.size() > kMostWeights) return "too many weight tables in a batch";
  const Span rows = needed_mcu_rows(plan_.spec, job, plan_.weights.data());
  job.first_mcu_row = static_cast<std::uint32_t>(rows.begin);
  job.end_mcu_row = static_cast<std::uint32_t>(rows.end);
  if (const auto reason = is_packed ? "" : add_start_points(request, *header, job); !reason.empty()) return reason;
  const auto index = static_cast<std::uint32_t>(plan_.jobs.size());
  const auto reason = cut_tiles(plan_.spec, job, plan_.weights.data(), index, tiles_of_image_, plan_.tiles);
  if (!reason.empty()) return reason;
  divide_memory(job);
  if (is_packed) add_groups(request, job);
  plan_.scans += is_packed ? 0 : 1;
  plan_.bytes += request.file_untrusted.size();
  plan_.jobs.push_back(job);
  return {};
}

// Good until the next one; nullptr: damaged, or none that an encoder makes.
const jpeg::Header* Planner::read_packed(const ImageRequest& request) {
  const bool is_sound = packed_.read(request.file_untrusted, packed::Check::kShape) && has_usual_groups(packed_);
  return is_sound ? &packed_.header() : nullptr;
}

std::string_view Planner::add_scan(const ImageRequest& request, const jpeg::Header& header, ImageJob& job) {
  if (!jpeg::is_well_marked(header.scan, jpeg::seek_grid(header).mcus(), header.restart_interval, best_target()))
    return "the scan's markers are not all in their places up to the end of the image";
  job.bytes = request.at + (request.file_untrusted.size() - header.scan.size());
  job.byte_count = static_cast<std::uint32_t>(header.scan.size());
  return {};
}

// Those of the packed image that was read last.
void Planner::add_groups(const ImageRequest& request, ImageJob& job) {
  if (plan_.shapes.empty()) plan_.shapes = packed_shapes();
  const Shape shape = shape_of(plan_.spec, job, plan_.weights.data(), whole_tile(plan_.spec, job, 0));
  const jpeg::McuWindow window{{static_cast<int>(job.first_mcu_row), static_cast<int>(job.end_mcu_row)},
                               {shape.mcu_columns.begin, shape.mcu_columns.end}};
  job.token_capacity = append_groups(packed_, request.file_untrusted.data(), window, request.at,
                                     static_cast<std::uint32_t>(plan_.jobs.size()), plan_.groups);
  plan_.tokens += job.token_capacity;
}

// The job's ranges of tokens and block entries; those of a packed image's tokens are its groups'.
void Planner::divide_memory(ImageJob& job) {
  const std::uint64_t in_row = std::uint64_t{job.mcu_columns} * job.blocks_in_mcu;
  const std::uint64_t wanted = in_row * (job.end_mcu_row - job.first_mcu_row);
  std::uint64_t decoded = wanted;
  if (job.segments > 0) {
    decoded = 0;
    for (std::uint32_t i = 0; i < job.segments; ++i)
      decoded += std::uint64_t{plan_.segments[job.first_segment + i].mcus} * job.blocks_in_mcu;
  }
  job.first_block = plan_.blocks;
  plan_.blocks += wanted;
  job.first_token = plan_.tokens;
  if (job.byte_count == 0) return;
  job.token_capacity = token_capacity(job.byte_count, decoded, job.segments);
  plan_.tokens += job.token_capacity;
}

std::string_view Planner::add_quants(const jpeg::Header& header, ImageJob& job) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(header.components); ++i) {
    const auto quant = quant_of(*header.quant[header.component[i].quant]);
    if (!quant) return "too many quantisation tables in a batch";
    job.component[i].quant = *quant;
  }
  return {};
}

std::string_view Planner::add_tables(const jpeg::Header& header, ImageJob& job) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(header.components); ++i) {
    const jpeg::Component& component = header.component[i];
    const auto dc = tables_.slot_of(jpeg::TableKind::kDc, *header.dc[component.dc]);
    const auto ac = tables_.slot_of(jpeg::TableKind::kAc, *header.ac[component.ac]);
    if (!dc || !ac) return "a Huffman table that libjpeg-turbo refuses, or too many in a batch";
    job.component[i].dc_table = static_cast<std::uint16_t>(*dc);
    job.component[i].ac_table = static_cast<std::uint16_t>(*ac);
  }
  return {};
}

std::optional<std::uint16_t> Planner::quant_of(const QuantTable& table) {
  const auto found = quants_.find(table);
  if (found != quants_.end()) return found->second;
  if (plan_.quants.size() > UINT16_MAX) return std::nullopt;
  const auto at = static_cast<std::uint16_t>(plan_.quants.size());
  quants_.emplace(table, at);
  plan_.quants.push_back(table);
  return at;
}

void Planner::add_weights(ImageJob& job) {
  job.column_weights = job.row_weights = kComputed;
  if (is_computed(recipe_.filter)) return;
  const bool whole = job.resized_width == 0;
  const StoredSides sides = stored_sides(plan_.spec, job);
  const int width = whole ? sides.columns : job.resized_width;
  const int height = whole ? sides.rows : job.resized_height;
  job.column_weights = append_weight_table(
      {Axis::kColumns, 3, job.crop_width, width, job.window_left, sides.columns, recipe_.filter}, plan_.weights);
  job.row_weights = append_weight_table(
      {Axis::kRows, 1, job.crop_height, height, job.window_top, sides.rows, recipe_.filter}, plan_.weights);
}

std::string_view Planner::add_start_points(const ImageRequest& request, const jpeg::Header& header, ImageJob& job) {
  const jpeg::SeekGrid grid = jpeg::seek_grid(header);
  const Shape shape = shape_of(plan_.spec, job, plan_.weights.data(), whole_tile(plan_.spec, job, 0));
  jpeg::McuWindow window{{shape.mcu_rows.begin, shape.mcu_rows.end}, {shape.mcu_columns.begin, shape.mcu_columns.end}};
  if (is_judged_from_start(header)) window = {{0, shape.mcu_rows.end}, {0, grid.columns}};
  job.first_segment = plan_.segments.size();
  const std::int64_t end = std::int64_t{window.lines.end} * grid.columns;  // whole rows are decoded
  if (header.restart_interval > 0 && header.restart_interval < end) {
    job.restart_interval = static_cast<std::uint32_t>(header.restart_interval);
    if (!append_intervals(header.scan, grid, header.restart_interval, window, plan_.segments))
      return "restart markers are missing or out of order";
  } else if (header.restart_interval == 0 && index_.read(request.index_untrusted, header, request.index_owner)) {
    append_indexed(index_, window, plan_.segments);
  }
  job.segments = static_cast<std::uint32_t>(plan_.segments.size() - job.first_segment);
  for (std::size_t i = job.first_segment; i < plan_.segments.size(); ++i) {
    if (plan_.segments[i].end_bit - plan_.segments[i].first_bit > 8 * settings_.most_interval_bytes)
      return "too much data between two restarts";
  }
  return {};
}

}  // namespace millrace::kernels::cuda
