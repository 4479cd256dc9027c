// Every message in this file is untrusted.
#include "daemon/serve/parse/parse_dataset.h"

#include <algorithm>
#include <numeric>

#include "daemon/formats/format_table.h"
#include "daemon/serve/parse/parse_batch.h"
#include "proto/rpc/batch_choices_message.h"
#include "proto/rpc/field.h"
#include "proto/rpc/position_token.h"
#include "proto/rpc/recipe_message.h"

namespace millrace {
namespace {

Result<void> check_blocks(const v1::StartEpoch& request) {
  if ((request.block_samples() == 0) != (request.window_blocks() == 0))
    return field_error("window_blocks", "must be set together with block_samples: both at least 1, or neither");
  if (request.block_samples() != 0 && !request.shuffle())
    return field_error("block_samples", "must be set together with shuffle: without it samples come in their order");
  return {};
}

Result<EpochOrderSpec> parse_order(const v1::StartEpoch& request, const Dataset& dataset, const Limits& limits) {
  MILLRACE_TRY_VOID(check_range("batch_size", request.batch_size(), 1U, limits.batch.samples));
  const std::uint32_t world_size = std::max(1U, request.world_size());
  if (request.rank() >= world_size) {
    return field_error("rank", "must be less than world_size (" + std::to_string(world_size) + "), is " +
                                   std::to_string(request.rank()));
  }
  EpochOrderSpec order{.samples = dataset.samples(),
                       .seed = request.seed(),
                       .epoch = request.epoch(),
                       .shuffle = request.shuffle() ? Shuffle::kYes : Shuffle::kNo,
                       .last_batch = request.drop_last() ? LastBatch::kDrop : LastBatch::kKeep,
                       .batch_size = request.batch_size(),
                       .rank = request.rank(),
                       .world_size = world_size,
                       .block_samples = request.block_samples(),
                       .window_blocks = request.window_blocks()};
  MILLRACE_TRY_VOID(check_blocks(request));
  MILLRACE_TRY(order.tail, from_message("shard_tail", request.shard_tail()));
  return order;
}

// Of an epoch whose order the client says.
Result<void> check_given(const v1::StartEpoch& request) {
  const auto unset = [](std::string_view field, bool is_set) -> Result<void> {
    if (!is_set) return {};
    return field_error(field, "must not be set together with given: the client says which samples make which batch");
  };
  MILLRACE_TRY_VOID(unset("shuffle", request.shuffle()));
  MILLRACE_TRY_VOID(unset("drop_last", request.drop_last()));
  MILLRACE_TRY_VOID(unset("rank", request.rank() != 0));
  MILLRACE_TRY_VOID(unset("world_size", request.world_size() != 0));
  MILLRACE_TRY_VOID(unset("shard_tail", request.shard_tail() != v1::SHARD_TAIL_UNSPECIFIED));
  MILLRACE_TRY_VOID(unset("block_samples", request.block_samples() != 0));
  MILLRACE_TRY_VOID(unset("window_blocks", request.window_blocks() != 0));
  MILLRACE_TRY_VOID(unset("position", !request.position().empty()));
  return unset("first_batches", request.first_batches() != 0);
}

Error other_dataset() {
  return Error{Code::kPrecondition,
               "position: was taken on another dataset, or the files have changed since: put the same files back, or "
               "start the epoch without a "
               "position"};
}

Error other_epoch(std::string_view field, std::uint64_t then, std::uint64_t now) {
  return Error{Code::kPrecondition, "position: was taken with " + std::string(field) + " " + std::to_string(then) +
                                        ", this epoch has " + std::to_string(now) +
                                        ": start it with the same value, or without a position"};
}

// Where the token resumes. What decides the order must be as it was when the token was made.
Result<std::uint64_t> parse_position(std::string_view token, const EpochOrderSpec& order, const Dataset& dataset) {
  MILLRACE_TRY(const v1::EpochPosition then, decode_position(token));
  if (has_unknown_fields(then)) return inside("position", unknown_field(then));
  if (then.fingerprint() != dataset.fingerprint()) return other_dataset();
  MILLRACE_TRY_IN("position", const ShardTail tail,
                  from_message("shard_tail", static_cast<v1::ShardTail>(std::min(then.shard_tail(), 1'000U))));
  struct Field {
    std::string_view name;
    std::uint64_t then, now;
  };
  const Field fields[] = {
      {"seed", then.seed(), order.seed},
      {"epoch", then.epoch(), order.epoch},
      {"shuffle", then.shuffle() ? 1U : 0U, order.shuffle == Shuffle::kYes ? 1U : 0U},
      {"drop_last", then.drop_last() ? 1U : 0U, order.last_batch == LastBatch::kDrop ? 1U : 0U},
      {"batch_size", then.batch_size(), order.batch_size},
      {"rank", then.rank(), order.rank},
      {"world_size", then.world_size(), order.world_size},
      {"shard_tail", static_cast<std::uint64_t>(to_message(tail)), static_cast<std::uint64_t>(to_message(order.tail))},
      {"block_samples", then.block_samples(), order.block_samples},
      {"window_blocks", then.window_blocks(), order.window_blocks},
  };
  for (const Field& field : fields) {
    if (field.then != field.now) return other_epoch(field.name, field.then, field.now);
  }
  return then.next_batch();
}

// Unless the client chooses: what keeps every batch that has a good sample, in its full size where the order is random
// anyway. The guard then says when that is too much.
Result<void> choose_on_error(const v1::StartEpoch& request, EpochRequest& epoch) {
  MILLRACE_TRY(epoch.on_error, from_message("on_error", request.on_error()));
  if (request.on_error() != v1::ON_ERROR_UNSPECIFIED) return {};
  epoch.on_error = request.shuffle() ? OnError::kSubstitute : OnError::kSkip;
  epoch.guard = Guard::kOn;
  return {};
}

Result<void> check_extension(const std::string& extension) {
  const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  if (!extension.empty() && extension.size() <= kLongestExtension &&
      std::all_of(extension.begin(), extension.end(), allowed))
    return {};
  return Error{Code::kInvalid,
               "must be 1 to " + std::to_string(kLongestExtension) + " lower-case letters and digits without the dot"};
}

// What ListFiles and ListParts have in common.
template <class List>
Result<void> check_list(const List& request, const Limits& limits) {
  if (has_unknown_fields(request)) return unknown_field(request);
  if (request.dataset_id() == 0) return field_error("dataset_id", "must be at least 1, is 0");
  if (!request.folder().empty()) MILLRACE_TRY_VOID(check_path("folder", request.folder(), limits));
  if (!request.paths().empty() && request.paths().back() != '\0')
    return field_error("paths", "must have a zero byte after each path");
  return {};
}

}  // namespace

Result<OpenDatasetRequest> parse_open_dataset(const v1::OpenDataset& request, const Limits& limits) {
  if (has_unknown_fields(request)) return unknown_field(request);
  if (request.dataset_id() == 0) return field_error("dataset_id", "must be at least 1, is 0");
  MILLRACE_TRY_VOID(check_path("path", request.path(), limits));
  if (static_cast<std::uint32_t>(request.extensions_size()) > kMostExtensions) {
    return field_error("extensions", "must be at most " + std::to_string(kMostExtensions) + ", are " +
                                         std::to_string(request.extensions_size()));
  }
  OpenDatasetRequest parsed{.id = DatasetId{request.dataset_id()}, .path = request.path()};
  for (int i = 0; i < request.extensions_size(); ++i) {
    if (const Result<void> checked = check_extension(request.extensions(i)); !checked)
      return checked.error().within("extensions[" + std::to_string(i) + "]");
    parsed.choice.extensions.push_back(request.extensions(i));
  }
  if (request.pictures() && !request.extensions().empty())
    return field_error("pictures", "must not be set together with extensions: they say which files are samples");
  if (request.pictures()) parsed.choice.extensions.assign(kPictureExtensions.begin(), kPictureExtensions.end());
  if (request.skip_unclassified()) parsed.choice.unclassified = Unclassified::kSkipped;
  return parsed;
}

Result<ListFilesRequest> parse_list_files(v1::ListFiles& request, const Limits& limits) {
  MILLRACE_TRY_VOID(check_list(request, limits));
  const auto& labels = request.labels();
  if (!labels.empty() && std::ranges::count(request.paths(), '\0') != labels.size())
    return field_error("labels", "must be as many as paths, or none");
  return ListFilesRequest{.id = DatasetId{request.dataset_id()},
                          .folder = std::move(*request.mutable_folder()),
                          .part = {.paths_untrusted = std::move(*request.mutable_paths()),
                                   .labels = std::vector<std::int64_t>(labels.begin(), labels.end())},
                          .last = request.last()};
}

Result<ListFilesRequest> parse_list_parts(v1::ListParts& request, const Limits& limits) {
  MILLRACE_TRY_VOID(check_list(request, limits));
  const int samples = request.files_size();
  if (request.offsets_size() != samples || request.lengths_size() != samples)
    return field_error("files", "must be as many as offsets and lengths, are " + std::to_string(samples) + ", " +
                                    std::to_string(request.offsets_size()) + " and " +
                                    std::to_string(request.lengths_size()));
  if (!request.labels().empty() && request.labels_size() != samples)
    return field_error("labels", "must be as many as files, offsets and lengths, or none");
  if (request.sizes_size() != request.modified_ns_size()) return field_error("sizes", "must be as many as modified_ns");
  if (!request.sizes().empty() && std::ranges::count(request.paths(), '\0') != request.sizes_size())
    return field_error("sizes", "must be as many as paths, or none");
  RangesInFiles ranges{.files = {request.files().begin(), request.files().end()},
                       .offsets = {request.offsets().begin(), request.offsets().end()},
                       .lengths = {request.lengths().begin(), request.lengths().end()}};
  ranges.stamps.reserve(static_cast<std::size_t>(request.sizes_size()));
  for (int i = 0; i < request.sizes_size(); ++i)
    ranges.stamps.push_back({Bytes{request.sizes(i)}, request.modified_ns(i)});
  return ListFilesRequest{.id = DatasetId{request.dataset_id()},
                          .folder = std::move(*request.mutable_folder()),
                          .part = {.paths_untrusted = std::move(*request.mutable_paths()),
                                   .labels = {request.labels().begin(), request.labels().end()},
                                   .ranges_untrusted = std::move(ranges)},
                          .last = request.last()};
}

Result<NameFilesRequest> parse_name_files(const v1::NameFiles& request, const DatasetTable& datasets) {
  if (has_unknown_fields(request)) return unknown_field(request);
  if (request.question_id() == 0) return field_error("question_id", "must be at least 1, is 0");
  NameFilesRequest parsed{.id = QuestionId{request.question_id()}, .dataset = nullptr, .samples = {}};
  MILLRACE_TRY(parsed.dataset, datasets.find(DatasetId{request.dataset_id()}));
  if (static_cast<std::uint32_t>(request.samples_size()) > kMostFilesNamed)
    return field_error("samples", "must be at most " + std::to_string(kMostFilesNamed) + ", are " +
                                      std::to_string(request.samples_size()));
  for (const std::uint64_t sample : request.samples()) {
    if (sample >= parsed.dataset->samples())
      return field_error("samples", "the dataset has " + std::to_string(parsed.dataset->samples()) +
                                        ", there is no sample " + std::to_string(sample));
    parsed.samples.push_back(SampleId{sample});
  }
  return parsed;
}

GiveBatchesRequest parse_give_batches(const v1::GiveBatches& request) {
  const EpochStreamId id{request.stream_id()};
  if (has_unknown_fields(request)) return {id, unknown_field(request)};
  const auto& sizes = request.sizes();
  if (sizes.empty() && !request.last()) return {id, field_error("sizes", "must have one, or last must be set")};
  if (std::ranges::count(sizes, 0U) > 0) return {id, field_error("sizes", "must be at least 1, one is 0")};
  const std::uint64_t samples = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  if (samples != static_cast<std::uint64_t>(request.samples_size()))
    return {id, field_error("samples", "must be as many as sizes say, " + std::to_string(samples) + ", are " +
                                           std::to_string(request.samples_size()))};
  if (!request.draws().empty() && request.draws_size() != request.samples_size())
    return {id, field_error("draws", "must be as many as samples, or none")};
  return {id, GivenBatches{.sizes = {sizes.begin(), sizes.end()},
                           .samples = {request.samples().begin(), request.samples().end()},
                           .draws = {request.draws().begin(), request.draws().end()},
                           .last = request.last()}};
}

Result<EpochRequest> parse_start_epoch(const v1::StartEpoch& request, const Limits& limits,
                                       const DatasetTable& datasets) {
  if (has_unknown_fields(request)) return unknown_field(request);
  if (request.stream_id() == 0) return field_error("stream_id", "must be at least 1, is 0");
  EpochRequest epoch{.id = EpochStreamId{request.stream_id()}, .batches = request.first_batches()};
  MILLRACE_TRY(epoch.dataset, datasets.find(DatasetId{request.dataset_id()}));
  MILLRACE_TRY_IN("recipe", const Recipe recipe, from_message(request.recipe()));
  epoch.recipe = std::make_shared<const Recipe>(recipe);
  if (request.given()) {
    MILLRACE_TRY_VOID(check_given(request));
    epoch.order_by = OrderBy::kClient;
  }
  MILLRACE_TRY(epoch.order, parse_order(request, *epoch.dataset, limits));
  MILLRACE_TRY_VOID(choose_on_error(request, epoch));
  MILLRACE_TRY(epoch.fidelity, from_message("fidelity", request.fidelity()));
  MILLRACE_TRY(epoch.priority, from_message("priority", request.priority()));
  MILLRACE_TRY_VOID(check_backend(request.backend()));
  epoch.backend = request.backend();
  if (!request.position().empty()) {
    MILLRACE_TRY(epoch.first_batch, parse_position(request.position(), epoch.order, *epoch.dataset));
  }
  return epoch;
}

}  // namespace millrace
