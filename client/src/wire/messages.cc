#include "client/src/wire/messages.h"

#include <algorithm>
#include <limits>

#include "proto/base/printable.h"
#include "proto/rpc/batch_choices_message.h"
#include "proto/rpc/recipe_message.h"
#include "proto/rpc/status_map.h"

namespace millrace {
inline namespace client {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

bool is_large(const Encoded& encoded) {
  return encoded.bytes.size() >= LargeImage::kFrom;
}

void fill(v1::Sample& out, const Sample& sample) {
  std::visit(Overloaded{[&](const Path& path) { out.set_path(path.path); },
                        [&](const Encoded& encoded) {
                          if (!is_large(encoded)) out.set_encoded(encoded.bytes.data(), encoded.bytes.size());
                        },
                        [&](const RingRoom& room) {
                          out.mutable_ring()->set_offset(room.offset());
                          out.mutable_ring()->set_length(room.bytes().size());
                        },
                        [&](const DatasetSample& of) {
                          out.mutable_dataset()->set_dataset_id(of.dataset);
                          out.mutable_dataset()->set_sample_id(of.sample);
                        },
                        [&](const FilePart& part) {
                          out.mutable_part()->set_path(part.path);
                          out.mutable_part()->set_offset(part.offset);
                          out.mutable_part()->set_length(part.length);
                        }},
             sample.source);
  if (sample.id) {
    out.set_id(*sample.id);
    out.set_has_id(true);
  }
  if (sample.label) out.set_label(*sample.label);
  if (sample.box) *out.mutable_box() = to_message(*sample.box);
  if (sample.size) *out.mutable_size() = to_message(*sample.size);
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

}  // namespace

v1::Submit to_message(std::uint64_t batch_id, const BatchRequest& request, const Recipe& session_recipe) {
  v1::Submit out;
  out.set_batch_id(batch_id);
  out.mutable_samples()->Reserve(static_cast<int>(request.samples.size()));
  for (const Sample& sample : request.samples) fill(*out.add_samples(), sample);
  *out.mutable_recipe() = to_message(request.recipe.value_or(session_recipe));
  out.set_seed(request.seed);
  out.set_epoch(request.epoch);
  out.set_on_error(to_message(request.on_error));
  out.set_fidelity(to_message(request.fidelity));
  out.set_priority(to_message(request.priority));
  constexpr std::int64_t kLongest = std::numeric_limits<std::uint32_t>::max();
  out.set_deadline_ms(static_cast<std::uint32_t>(std::clamp<std::int64_t>(request.deadline.count(), 0, kLongest)));
  out.set_backend(request.backend);
  return out;
}

std::vector<LargeImage> large_images(const BatchRequest& request) {
  std::vector<LargeImage> images;
  for (std::size_t i = 0; i < request.samples.size(); ++i) {
    const auto* const encoded = std::get_if<Encoded>(&request.samples[i].source);
    if (encoded != nullptr && is_large(*encoded)) images.push_back({static_cast<int>(i), encoded->bytes});
  }
  return images;
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
  out.set_block_samples(options.block_samples);
  out.set_window_blocks(options.window_blocks);
  out.set_drop_last(options.drop_last);
  out.set_rank(options.rank);
  if (!options.order || options.world_size > 1) out.set_world_size(options.world_size);
  if (!options.order || options.shard_tail != ShardTail::kPad) out.set_shard_tail(to_message(options.shard_tail));
  if (options.on_error) out.set_on_error(to_message(*options.on_error));
  out.set_fidelity(to_message(options.fidelity));
  out.set_priority(to_message(options.priority));
  out.set_position(options.position);
  out.set_backend(options.backend);
  out.set_first_batches(options.batches);
  if (options.order) out.set_given(true);
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
