#include "kernels/cuda/plan/plan.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/plan/packed_groups.h"
#include "kernels/cuda/plan/start_points.h"
#include "kernels/cuda/plan/tile_plan.h"
#include "kernels/cuda/tokenise/tokenise_args.h"
#include "kernels/jpeg/restart_intervals.h"
#include "kernels/tensor/store_table.h"

namespace millrace::kernels::cuda {
namespace {

constexpr std::size_t kMostWeights = std::size_t{1} << 30;

// Room for all tokens that a well-formed scan can have: two bits of data a token at least, but for three runs of zeros
// a block.
std::uint32_t token_capacity(std::uint64_t scan_bytes, std::uint64_t blocks, std::uint64_t segments) {
  const std::uint64_t most = std::min(4 * scan_bytes + 3 * blocks, 63 * blocks);
  const std::uint64_t room = segments == 0 ? most + 4 : 2 * (most + segments * kTokenPiece);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>((room + 3) / 4 * 4, UINT32_MAX - 3));
}

PatchSpec patch_spec(const StoreSpec& store) {
  if (!store.patches) return {};
  const Patches& patches = *store.patches;
  return {static_cast<std::uint16_t>(patches.width), static_cast<std::uint16_t>(patches.height),
          static_cast<std::uint16_t>(patches.merge), static_cast<std::uint16_t>(patches.temporal)};
}

// Of the pictures that are augmented.
constexpr StoreSpec kPictures{.dtype = DType::kUint8, .layout = Layout::kNhwc};

std::vector<std::uint32_t> store_values(const StoreSpec& store) {
  const StoreTable table(store);
  std::vector<std::uint32_t> values;
  for (int c = 0; c < table.channels(); ++c)
    values.insert(values.end(), std::begin(table.plane(c).values), std::end(table.plane(c).values));
  return values;
}

// Chroma of a quarter of the columns is libjpeg-turbo's on the CPU, which finds damage in all MCUs above a crop and in
// its rows of them.
bool is_judged_from_start(const jpeg::Header& header) {
  return header.component[0].h == 4;
}

}  // namespace

TensorSpec tensor_spec(const BatchRecipe& recipe) {
  return {recipe.order,          recipe.store.layout,
          recipe.store.channels, static_cast<std::uint8_t>(bytes_of(recipe.store.dtype)),
          recipe.fidelity,       patch_spec(recipe.store)};
}

bool is_possible(const BatchRecipe& recipe) {
  return recipe.size == Size{} || is_storable(recipe.store, recipe.size);
}

Planner::Planner(const BatchRecipe& recipe, const PlannerSettings& settings)
    : recipe_(recipe), settings_(settings), tables_(std::min(settings.table_slots, std::uint32_t{65536})) {
  plan_.spec = plan_.tensor_spec = tensor_spec(recipe);
  plan_.store = plan_.tensor_store = store_values(recipe.store);
  plan_.tensor_bytes = image_bytes(recipe.size);
  plan_.table_slots = tables_.slots();
}

// What K2 makes of this batch.
void Planner::choose_form(std::span<const ImageRequest> requests) {
  const bool by_pictures = std::any_of(requests.begin(), requests.end(), [](const ImageRequest& request) {
    return std::any_of(request.views.begin(), request.views.end(),
                       [](const ViewRequest& v) { return v.is_augmented(); });
  });
  if (by_pictures == std::exchange(by_pictures_, by_pictures)) return;
  plan_.spec = plan_.tensor_spec;
  plan_.store = plan_.tensor_store;
  if (!by_pictures) return;
  // Steps may carry a level far: what they begin with is exact, also where the recipe is not.
  plan_.spec = tensor_spec({.store = kPictures, .order = recipe_.order});
  plan_.store = store_values(kPictures);
}

void Planner::clear() {
  plan_.refusals.clear();
  plan_.requests.clear();
  plan_.views.clear();
  plan_.places.clear();
  plan_.jobs.clear();
  plan_.tiles.clear();
  plan_.segments.clear();
  plan_.groups.clear();
  plan_.shapes.clear();
  plan_.quants.clear();
  plan_.weights.clear();
  plan_.pictures.clear();
  plan_.tokens = plan_.blocks = plan_.scans = plan_.tensors_bytes = plan_.picture_bytes = 0;
  quants_.clear();
  views_.clear();
  first_view_ = 0;
  tables_.begin_batch();
}

const BatchPlan& Planner::plan(std::span<const ImageRequest> requests) {
  clear();
  choose_form(requests);
  std::size_t tensors = 0;
  for (const ImageRequest& request : requests) tensors += std::max<std::size_t>(request.views.size(), 1);
  tensors = std::max<std::size_t>(tensors, 1);
  tiles_of_tensor_ = static_cast<int>((settings_.wanted_tiles + tensors - 1) / tensors);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::size_t segments = plan_.segments.size(), weights = plan_.weights.size(), tiles = plan_.tiles.size();
    plan_.refusals.push_back(add(requests[i]));
    if (plan_.refusals.back().empty()) {
      plan_.requests.resize(plan_.jobs.size(), static_cast<std::uint32_t>(i));
      continue;
    }
    plan_.segments.resize(segments);
    plan_.weights.resize(weights);
    plan_.tiles.resize(tiles);
  }
  plan_.new_tables = tables_.new_tables();
  plan_.table_runs = tables_.runs();
  return plan_;
}

std::uint64_t Planner::image_bytes(Size size) const {
  const std::uint64_t frames = recipe_.store.patches ? static_cast<std::uint64_t>(recipe_.store.patches->temporal) : 1;
  const bool is_size = is_storable(recipe_.store, size);
  return is_size ? std::uint64_t{plan_.tensor_spec.element_bytes} *
                       static_cast<std::uint64_t>(channels_of(plan_.tensor_spec)) *
                       static_cast<std::uint64_t>(size.width) * static_cast<std::uint64_t>(size.height) * frames
                 : 0;
}

// What the request says of its tensors, and where they go. Those of a refused one have their places, too.
void Planner::take_views(const ImageRequest& request) {
  first_view_ += static_cast<std::uint32_t>(views_.size());
  views_.assign(request.views.begin(), request.views.end());
  if (views_.empty())
    views_.push_back({request.crop, request.flip, request.resized, request.window, recipe_.size, recipe_.filter});
  places_.clear();
  for (ViewRequest& view : views_) {
    if (view.size == Size{}) view.size = recipe_.size;
    if (!view.filter) view.filter = recipe_.filter;
    places_.push_back({plan_.tensors_bytes, image_bytes(view.output())});
    plan_.tensors_bytes += places_.back().bytes;
  }
}

// What was appended to segments, weights and tiles for an image that is refused goes again; the rest comes last.
std::string_view Planner::add(const ImageRequest& request) {
  take_views(request);
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
  if (const auto reason = add_quants(*header, job); !reason.empty()) return reason;
  if (const auto reason = is_packed ? "" : add_tables(*header, job); !reason.empty()) return reason;
  McuBox mcus{};
  if (const auto reason = add_views(request, job, mcus); !reason.empty()) return reason;
  if (const auto reason = is_packed ? "" : add_start_points(request, *header, mcus, jobs_[0]); !reason.empty())
    return reason;
  if (const auto reason = cut(mcus); !reason.empty()) return reason;
  if (const auto reason = by_pictures_ ? add_pictures() : ""; !reason.empty()) return reason;
  divide_memory(jobs_[0]);
  if (is_packed) add_groups(request, mcus, jobs_[0]);
  plan_.scans += is_packed ? 0 : 1;
  add_jobs();
  return {};
}

// A job for each view, and the MCUs that one or the other looks at.
std::string_view Planner::add_views(const ImageRequest& request, const ImageJob& image, McuBox& mcus) {
  jobs_.clear();
  const std::size_t most = plan_.weights.size() + kMostWeightsOfImage;
  for (std::size_t i = 0; i < views_.size(); ++i) {
    if (!is_possible(views_[i].size) || !is_storable(recipe_.store, views_[i].output()))
      return "a tensor of a size that the kernels do not make";
    ImageJob& job = jobs_.emplace_back(image);
    job.output = places_[i].at;
    if (const auto reason = put_view(views_[i], request.orientation, most - plan_.weights.size(), job, plan_.weights);
        !reason.empty())
      return reason;
    if (plan_.weights.size() > kMostWeights) return "too many weight tables in a batch";
  }
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const McuBox of_view = needed_mcus(plan_.spec, jobs_[i], plan_.weights.data());
    mcus = i == 0 ? of_view : around(mcus, of_view);
  }
  for (ImageJob& job : jobs_) {
    job.first_mcu_row = static_cast<std::uint32_t>(mcus.rows.begin);
    job.end_mcu_row = static_cast<std::uint32_t>(mcus.rows.end);
  }
  return {};
}

// The tensors' tiles. Between views there may be blocks that the CPU sees and none of them: where libjpeg-turbo, which
// takes the file if they are odd, looks at more of the file than is decoded here, its verdict may be another one.
std::string_view Planner::cut(const McuBox& mcus) {
  bool is_seen = jobs_[0].restart_interval == 0;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    is_seen = is_seen || holds(needed_mcus(plan_.spec, jobs_[i], plan_.weights.data()), mcus);
    const auto reason = cut_tiles(plan_.spec, jobs_[i], plan_.weights.data(),
                                  static_cast<std::uint32_t>(plan_.jobs.size() + i), tiles_of_tensor_, plan_.tiles);
    if (!reason.empty()) return reason;
  }
  return is_seen ? "" : "a file with restart markers whose views leave blocks between them";
}

// What becomes of each view's picture. Of those of an image all are appended, or none.
std::string_view Planner::add_pictures() {
  constexpr std::uint64_t kAligned = 16;
  PicturePlan& pictures = plan_.pictures;
  const std::uint64_t bytes = plan_.picture_bytes, scratch = pictures.scratch_bytes;
  const std::size_t jobs = pictures.jobs.size(), steps = pictures.steps.size(), boxes = pictures.boxes.size(),
                    tables = pictures.tables.size();
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const ViewRequest& view = views_[i];
    const auto pixels = static_cast<std::uint64_t>(view.size.width) * static_cast<std::uint64_t>(view.size.height);
    jobs_[i].output = plan_.picture_bytes;
    plan_.picture_bytes += (3 * pixels + kAligned - 1) / kAligned * kAligned;
    const auto reason = append_picture({.image = static_cast<std::uint32_t>(plan_.jobs.size()),
                                        .picture = jobs_[i].output,
                                        .output = places_[i].at,
                                        .inner = view.size,
                                        .size = view.output(),
                                        .canvas = view.canvas,
                                        .operations = view.operations,
                                        .erased = view.erased},
                                       recipe_.store, pictures);
    if (reason.empty()) continue;
    plan_.picture_bytes = bytes;
    pictures.scratch_bytes = scratch;
    pictures.jobs.resize(jobs);
    pictures.steps.resize(steps);
    pictures.boxes.resize(boxes);
    pictures.tables.resize(tables);
    return reason;
  }
  return {};
}

// The first one's scan is decoded for all.
void Planner::add_jobs() {
  const ImageJob first = jobs_[0];
  const auto decoded = static_cast<std::uint32_t>(plan_.jobs.size());
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    ImageJob& job = jobs_[i];
    job.decoded = decoded;
    job.first_block = first.first_block;
    job.first_token = first.first_token;
    job.token_capacity = first.token_capacity;
    if (i > 0) job.byte_count = 0;
    plan_.jobs.push_back(job);
    plan_.views.push_back(first_view_ + static_cast<std::uint32_t>(i));
    plan_.places.push_back(places_[i]);
  }
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
void Planner::add_groups(const ImageRequest& request, const McuBox& mcus, ImageJob& job) {
  if (plan_.shapes.empty()) plan_.shapes = packed_shapes();
  const jpeg::McuWindow window{{mcus.rows.begin, mcus.rows.end}, {mcus.columns.begin, mcus.columns.end}};
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

std::string_view Planner::add_start_points(const ImageRequest& request, const jpeg::Header& header, const McuBox& mcus,
                                           ImageJob& job) {
  const jpeg::SeekGrid grid = jpeg::seek_grid(header);
  jpeg::McuWindow window{{mcus.rows.begin, mcus.rows.end}, {mcus.columns.begin, mcus.columns.end}};
  if (is_judged_from_start(header)) window = {{0, mcus.rows.end}, {0, grid.columns}};
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
