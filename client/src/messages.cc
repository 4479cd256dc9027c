#include "client/src/messages.h"

#include <algorithm>
#include <limits>

#include "proto/base/printable.h"
#include "proto/rpc/status_map.h"

namespace millrace {
inline namespace client {
namespace {

// Our enumerations begin where the messages' do after UNSPECIFIED, in the same order.
template <class Message, class Ours>
Message shifted(Ours value) {
  return static_cast<Message>(static_cast<int>(value) + 1);
}
static_assert(static_cast<int>(v1::DTYPE_FLOAT32) == static_cast<int>(DType::kFloat32) + 1);
static_assert(static_cast<int>(v1::LAYOUT_NHWC) == static_cast<int>(Layout::kNhwc) + 1);
static_assert(static_cast<int>(v1::CHANNELS_GREY) == static_cast<int>(Channels::kGrey) + 1);
static_assert(static_cast<int>(v1::FILTER_LANCZOS) == static_cast<int>(Filter::kLanczos) + 1);
static_assert(static_cast<int>(v1::VALUE_RANGE_RAW) == static_cast<int>(ValueRange::kRaw) + 1);
static_assert(static_cast<int>(v1::PACKING_PACKED) == static_cast<int>(Packing::kPacked) + 1);
static_assert(static_cast<int>(v1::CENTRE_ROUNDING_DOWN) == static_cast<int>(CentreRounding::kDown) + 1);
static_assert(static_cast<int>(v1::FIDELITY_FAST) == static_cast<int>(Fidelity::kFast) + 1);
static_assert(static_cast<int>(v1::ON_ERROR_SUBSTITUTE) == static_cast<int>(OnError::kSubstitute) + 1);
static_assert(static_cast<int>(v1::PRIORITY_HIGH) == static_cast<int>(Priority::kHigh) + 1);
static_assert(static_cast<int>(v1::SHARD_TAIL_UNEVEN) == static_cast<int>(ShardTail::kUneven) + 1);

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

void fill(v1::Size& out, Size size) {
  out.set_width(size.width);
  out.set_height(size.height);
}

void fill(v1::Box& out, const Box& box) {
  out.set_left(box.left);
  out.set_top(box.top);
  out.set_width(box.width);
  out.set_height(box.height);
}

void fill(v1::Crop& out, const Crop& crop) {
  std::visit(Overloaded{[](WholeImage) {}, [&](const CentreCrop& centre) { fill(*out.mutable_centre(), centre.size); },
                        [&](const RandomResizedCrop& random) {
                          auto& to = *out.mutable_random_resized();
                          to.set_min_scale(random.min_scale);
                          to.set_max_scale(random.max_scale);
                          to.set_min_ratio(random.min_ratio);
                          to.set_max_ratio(random.max_ratio);
                        },
                        [&](const BoxCrop& box) { fill(*out.mutable_box(), box.box); },
                        [&](const GridCell& cell) {
                          auto& to = *out.mutable_cell();
                          to.set_columns(cell.columns);
                          to.set_rows(cell.rows);
                          to.set_column(cell.column);
                          to.set_row(cell.row);
                        }},
             crop);
}

void fill(v1::Resize& out, const Resize& resize, Filter filter) {
  std::visit(Overloaded{[](KeepSize) {}, [&](ShorterSide side) { out.set_shorter_side(side.pixels); },
                        [&](LongerSide side) { out.set_longer_side(side.pixels); },
                        [&](const ExactSize& exact) { fill(*out.mutable_exact(), exact.size); },
                        [&](const SmartResize& smart) {
                          auto& to = *out.mutable_smart();
                          to.set_factor(smart.factor);
                          to.set_min_pixels(smart.min_pixels);
                          to.set_max_pixels(smart.max_pixels);
                        },
                        [&](const TileGrid& grid) {
                          auto& to = *out.mutable_tile_grid();
                          fill(*to.mutable_tile(), grid.tile);
                          to.set_min_tiles(grid.min_tiles);
                          to.set_max_tiles(grid.max_tiles);
                        },
                        [&](const BoundedSides& sides) {
                          out.mutable_bounded()->set_shortest(sides.shortest);
                          out.mutable_bounded()->set_longest(sides.longest);
                        }},
             resize);
  out.set_filter(shifted<v1::Filter>(filter));
}

void fill(v1::Patches& out, const Patches& patches) {
  out.set_width(patches.size.width);
  out.set_height(patches.size.height);
  out.set_merge(patches.merge);
  out.set_temporal(patches.temporal);
}

void fill(v1::Sample& out, const Sample& sample) {
  std::visit(Overloaded{[&](const Path& path) { out.set_path(path.path); },
                        [&](const Encoded& encoded) { out.set_encoded(encoded.bytes.data(), encoded.bytes.size()); },
                        [&](const RingRoom& room) {
                          out.mutable_ring()->set_offset(room.offset());
                          out.mutable_ring()->set_length(room.bytes().size());
                        },
                        [&](const DatasetSample& of) {
                          out.mutable_dataset()->set_dataset_id(of.dataset);
                          out.mutable_dataset()->set_sample_id(of.sample);
                        }},
             sample.source);
  if (sample.id) {
    out.set_id(*sample.id);
    out.set_has_id(true);
  }
  if (sample.label) out.set_label(*sample.label);
  if (sample.box) fill(*out.mutable_box(), *sample.box);
  if (sample.size) fill(*out.mutable_size(), *sample.size);
}

// "JPG", ".Jpg" and "jpg" are one.
std::string plain_extension(std::string_view extension) {
  if (extension.substr(0, 1) == ".") extension.remove_prefix(1);
  std::string plain(extension);
  for (char& letter : plain) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return plain;
}

SkipReason from_message(v1::SkipReason reason) {
  switch (reason) {
    case v1::SKIP_REASON_UNDECODED:
      return SkipReason::kUndecoded;
    case v1::SKIP_REASON_UNCLASSIFIED:
      return SkipReason::kUnclassified;
    default:
      return SkipReason::kNotAsked;
  }
}

}  // namespace

v1::Recipe to_message(const Recipe& recipe) {
  v1::Recipe out;
  out.set_ignore_orientation(recipe.ignore_orientation);
  if (!std::holds_alternative<WholeImage>(recipe.crop)) fill(*out.mutable_crop(), recipe.crop);
  // A sample that brings its own size is made with the filter, too.
  const bool resizes = !std::holds_alternative<KeepSize>(recipe.resize);
  if (resizes || recipe.filter != Filter::kBilinear) fill(*out.mutable_resize(), recipe.resize, recipe.filter);
  if (recipe.centre_crop) fill(*out.mutable_centre_crop(), *recipe.centre_crop);
  out.set_flip_probability(recipe.flip_probability);
  if (recipe.normalise) {
    for (const float mean : recipe.normalise->mean) out.mutable_normalise()->add_mean(mean);
    for (const float std : recipe.normalise->std) out.mutable_normalise()->add_std(std);
  }
  out.set_range(shifted<v1::ValueRange>(recipe.range));
  out.set_dtype(shifted<v1::DType>(recipe.dtype));
  out.set_layout(shifted<v1::Layout>(recipe.layout));
  out.set_channels(shifted<v1::Channels>(recipe.channels));
  out.set_packing(shifted<v1::Packing>(recipe.packing));
  if (recipe.patches) fill(*out.mutable_patches(), *recipe.patches);
  out.set_centre_rounding(shifted<v1::CentreRounding>(recipe.centre_rounding));
  return out;
}

v1::Submit to_message(std::uint64_t batch_id, const BatchRequest& request, const Recipe& session_recipe) {
  v1::Submit out;
  out.set_batch_id(batch_id);
  out.mutable_samples()->Reserve(static_cast<int>(request.samples.size()));
  for (const Sample& sample : request.samples) fill(*out.add_samples(), sample);
  *out.mutable_recipe() = to_message(request.recipe.value_or(session_recipe));
  out.set_seed(request.seed);
  out.set_epoch(request.epoch);
  out.set_on_error(shifted<v1::OnError>(request.on_error));
  out.set_fidelity(shifted<v1::Fidelity>(request.fidelity));
  out.set_priority(shifted<v1::Priority>(request.priority));
  constexpr std::int64_t kLongest = std::numeric_limits<std::uint32_t>::max();
  out.set_deadline_ms(static_cast<std::uint32_t>(std::clamp<std::int64_t>(request.deadline.count(), 0, kLongest)));
  out.set_backend(request.backend);
  return out;
}

v1::StartEpoch to_message(std::uint64_t stream_id, std::uint64_t dataset_id, const EpochOptions& options,
                          const Recipe& session_recipe, std::uint32_t session_batch) {
  v1::StartEpoch out;
  out.set_stream_id(stream_id);
  out.set_dataset_id(dataset_id);
  *out.mutable_recipe() = to_message(options.recipe.value_or(session_recipe));
  out.set_batch_size(options.batch != 0 ? options.batch : session_batch);
  out.set_seed(options.seed);
  out.set_epoch(options.epoch);
  out.set_shuffle(options.shuffle);
  out.set_drop_last(options.drop_last);
  out.set_rank(options.rank);
  out.set_world_size(options.world_size);
  out.set_shard_tail(shifted<v1::ShardTail>(options.shard_tail));
  if (options.on_error) out.set_on_error(shifted<v1::OnError>(*options.on_error));
  out.set_fidelity(shifted<v1::Fidelity>(options.fidelity));
  out.set_priority(shifted<v1::Priority>(options.priority));
  out.set_position(options.position);
  out.set_backend(options.backend);
  out.set_first_batches(options.batches);
  return out;
}

Result<v1::OpenDataset> to_message(std::uint64_t dataset_id, const std::string& folder, const DatasetOptions& options) {
  v1::OpenDataset out;
  out.set_dataset_id(dataset_id);
  out.set_path(folder);
  out.set_skip_unclassified(!options.unclassified);
  const bool every_file = options.extensions == std::vector<std::string>{"*"};
  out.set_pictures(options.extensions.empty());
  if (every_file) return out;
  for (const std::string& extension : options.extensions) {
    if (extension == "*")
      return Error{Code::kInvalid, "open_dataset: \"*\" means every file, so it is the only extension, or none"};
    out.add_extensions(plain_extension(extension));
  }
  return out;
}

// A scheme as RFC 3986 has it (3.1), and what follows it in a URL of a file.
Result<void> check_no_url(std::string_view path) {
  if (path.empty() || path.front() == '/') return {};
  const std::size_t end = path.find("://");
  const auto of_scheme = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '-' ||
           c == '.';
  };
  if (end == path.npos || end == 0 || !std::all_of(path.begin(), path.begin() + end, of_scheme)) return {};
  return Error{
      Code::kInvalid,
      printable(path.substr(0, 128)) +
          " is a URL, and the daemon reads none: give a path beneath one of its roots, or send the file's bytes"};
}

DType from_message(v1::DType dtype) {
  switch (dtype) {
    case v1::DTYPE_FLOAT16:
      return DType::kFloat16;
    case v1::DTYPE_BFLOAT16:
      return DType::kBfloat16;
    case v1::DTYPE_FLOAT32:
      return DType::kFloat32;
    default:
      return DType::kUint8;
  }
}

std::vector<SkippedFiles> from_message(const google::protobuf::RepeatedPtrField<v1::SkippedFiles>& skipped) {
  std::vector<SkippedFiles> out;
  for (const auto& group : skipped)
    out.push_back({.reason = from_message(group.reason()),
                   .extension = group.extension(),
                   .files = group.files(),
                   .examples = {group.examples().begin(), group.examples().end()}});
  return out;
}

std::vector<SampleError> from_message(const google::protobuf::RepeatedPtrField<v1::SampleError>& errors) {
  std::vector<SampleError> out;
  out.reserve(static_cast<std::size_t>(errors.size()));
  for (const auto& error : errors)
    out.push_back({.index = error.index(),
                   .sample = error.sample_id(),
                   .source = error.source(),
                   .path = error.path(),
                   .error = {code_from_name(error.code()), error.message()}});
  return out;
}

}  // namespace client
}  // namespace millrace
