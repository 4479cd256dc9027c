// Every message in this file is untrusted.
#include "daemon/serve/parse/parse_batch.h"

#include "proto/base/backend_name.h"
#include "proto/base/printable.h"
#include "proto/rpc/batch_choices_message.h"
#include "proto/rpc/field.h"
#include "proto/rpc/recipe_message.h"

namespace millrace {
namespace {

constexpr std::size_t kShown = 128;  // of a path that is none
// The largest side that any check of a sample lets through; keeps sums of sides within 32 bits.
constexpr std::uint32_t kMaxSide = 1U << 24U;

Result<RingSource> parse_ring(const v1::RingSpan& span) {
  if (has_unknown_fields(span)) return unknown_field(span);
  if (span.length() == 0) return field_error("length", "must be at least 1, is 0");
  if (span.offset() + span.length() < span.offset())
    return field_error("length", "reaches beyond the end of the address space");
  return RingSource{span.offset(), span.length()};
}

Result<DatasetSource> parse_dataset_sample(const v1::DatasetSample& sample, const DatasetTable& datasets) {
  if (has_unknown_fields(sample)) return unknown_field(sample);
  MILLRACE_TRY(std::shared_ptr<const Dataset> dataset, datasets.find(DatasetId{sample.dataset_id()}));
  if (sample.sample_id() >= dataset->samples()) {
    return field_error("sample_id", "must be less than the dataset's samples (" + std::to_string(dataset->samples()) +
                                        "), is " + std::to_string(sample.sample_id()));
  }
  return DatasetSource{std::move(dataset), SampleId{sample.sample_id()}};
}

Result<PathSource> parse_part(v1::FilePart& part, const Limits& limits) {
  if (has_unknown_fields(part)) return unknown_field(part);
  MILLRACE_TRY_VOID(check_path("path", part.path(), limits));
  const Dataset::Range range{part.offset(), Bytes{part.length()}};
  if (range.length == Dataset::Range::kWhole || !is_in_a_file(range))
    return field_error("length", "and offset together must be below 2^63, are " + std::to_string(part.length()) +
                                     " and " + std::to_string(part.offset()));
  return PathSource{std::move(*part.mutable_path()), range};
}

Result<SampleSource> parse_source(v1::Sample& sample, const Limits& limits, const DatasetTable& datasets) {
  switch (sample.source_case()) {
    case v1::Sample::kPath:
      MILLRACE_TRY_VOID(check_path("path", sample.path(), limits));
      return SampleSource{PathSource{std::move(*sample.mutable_path())}};
    case v1::Sample::kEncoded:
      return SampleSource{InlineSource{std::move(*sample.mutable_encoded())}};
    case v1::Sample::kRing: {
      MILLRACE_TRY_IN("ring", const RingSource ring, parse_ring(sample.ring()));
      return SampleSource{ring};
    }
    case v1::Sample::kDataset: {
      MILLRACE_TRY_IN("dataset", DatasetSource source, parse_dataset_sample(sample.dataset(), datasets));
      return SampleSource{std::move(source)};
    }
    case v1::Sample::kPart: {
      MILLRACE_TRY_IN("part", PathSource source, parse_part(*sample.mutable_part(), limits));
      return SampleSource{std::move(source)};
    }
    case v1::Sample::SOURCE_NOT_SET:
      break;
  }
  return field_error("source", "must be set: path, encoded, ring, dataset or part");
}

Result<Box> parse_box(const v1::Box& message) {
  MILLRACE_TRY(const Box box, from_message(message));
  constexpr auto kMost = static_cast<std::int32_t>(kMaxSide);
  MILLRACE_TRY_VOID(check_range("left", box.left, 0, kMost));
  MILLRACE_TRY_VOID(check_range("top", box.top, 0, kMost));
  MILLRACE_TRY_VOID(check_range("width", box.width, 1, kMost));
  MILLRACE_TRY_VOID(check_range("height", box.height, 1, kMost));
  return box;
}

Result<Size> parse_size(const v1::Size& message) {
  MILLRACE_TRY(const Size size, from_message(message));
  MILLRACE_TRY_VOID(check_range("width", size.width, 1U, kMaxSide));
  MILLRACE_TRY_VOID(check_range("height", size.height, 1U, kMaxSide));
  return size;
}

// An id that the client did not choose is the dataset's, else the position; a label the dataset's, else -1.
void identify(const v1::Sample& sample, int position, SampleRequest& parsed) {
  parsed.id = SampleId{static_cast<std::uint64_t>(position)};
  if (const auto* of_dataset = std::get_if<DatasetSource>(&parsed.source)) {
    parsed.id = of_dataset->sample;
    parsed.label = of_dataset->dataset->label(of_dataset->sample);
  }
  if (sample.has_id()) parsed.id = SampleId{sample.id()};
  if (sample.has_label()) parsed.label = sample.label();
}

Result<SampleRequest> parse_sample(v1::Sample& sample, int position, const Limits& limits,
                                   const DatasetTable& datasets) {
  if (has_unknown_fields(sample)) return unknown_field(sample);
  SampleRequest parsed;
  MILLRACE_TRY(parsed.source, parse_source(sample, limits, datasets));
  identify(sample, position, parsed);
  if (sample.has_box()) {
    MILLRACE_TRY_IN("box", parsed.overrides.box, parse_box(sample.box()));
  }
  if (sample.has_size()) {
    MILLRACE_TRY_IN("size", parsed.overrides.size, parse_size(sample.size()));
  }
  return parsed;
}

Result<void> check_inline_bytes(const v1::Submit& request, const Limits& limits) {
  Bytes sum;
  for (const v1::Sample& sample : request.samples()) {
    if (sample.source_case() == v1::Sample::kEncoded) sum += Bytes{sample.encoded().size()};
  }
  if (sum <= limits.batch.inline_message) return {};
  return field_error("samples", "the encoded bytes of one message are " +
                                    to_text_beside(sum, limits.batch.inline_message) + ", over the limit of " +
                                    to_text_beside(limits.batch.inline_message, sum) +
                                    " (limits.inline_message): send smaller batches, or use the input ring or paths");
}

}  // namespace

Result<void> check_path(std::string_view field, std::string_view path, const Limits& limits) {
  if (path.empty() || path.front() != '/')
    return field_error(field, "must be absolute, beginning with /, is \"" + printable(path.substr(0, kShown)) + "\"");
  if (path.size() > limits.batch.path_bytes) {
    return field_error(field, "must have at most " + std::to_string(limits.batch.path_bytes) +
                                  " bytes (limits.path_bytes), has " + std::to_string(path.size()));
  }
  if (path.find('\0') != std::string_view::npos) return field_error(field, "must not contain a zero byte");
  return {};
}

Result<void> check_backend(std::string_view backend) {
  if (backend.empty() || is_backend_name(backend)) return {};
  return field_error("backend", std::string("is not a backend's name, which has ") + kBackendNameRule +
                                    "; Devices.List shows the names");
}

Result<BatchRequest> parse_submit(v1::Submit& request, const Limits& limits, const DatasetTable& datasets,
                                  std::chrono::steady_clock::time_point now) {
  if (has_unknown_fields(request)) return unknown_field(request);
  if (request.samples().empty()) return field_error("samples", "must have at least one sample");
  if (static_cast<std::uint64_t>(request.samples_size()) > limits.batch.samples) {
    return field_error("samples", "must be at most " + std::to_string(limits.batch.samples) +
                                      " (limits.samples), are " + std::to_string(request.samples_size()));
  }
  MILLRACE_TRY_VOID(check_inline_bytes(request, limits));

  BatchRequest batch{.id = BatchId{request.batch_id()}, .seed = request.seed(), .epoch = request.epoch()};
  MILLRACE_TRY_IN("recipe", Recipe recipe, from_message(request.recipe()));
  batch.recipe = std::make_shared<const Recipe>(recipe);
  MILLRACE_TRY(batch.on_error, from_message("on_error", request.on_error()));
  MILLRACE_TRY(batch.fidelity, from_message("fidelity", request.fidelity()));
  MILLRACE_TRY(batch.priority, from_message("priority", request.priority()));
  MILLRACE_TRY_VOID(check_backend(request.backend()));
  batch.backend = request.backend();
  if (request.deadline_ms() > 0) batch.deadline = now + std::chrono::milliseconds(request.deadline_ms());

  batch.samples.reserve(static_cast<std::size_t>(request.samples_size()));
  for (int i = 0; i < request.samples_size(); ++i) {
    Result<SampleRequest> sample = parse_sample(*request.mutable_samples(i), i, limits, datasets);
    if (!sample) return inside("samples", i, std::move(sample).error());
    if (!batch.recipe->views.empty() && (sample->overrides.box || sample->overrides.size))
      return inside("samples", i,
                    field_error(sample->overrides.box ? "box" : "size",
                                "is not for a recipe with views: which of them is it for?"));
    batch.samples.push_back(*std::move(sample));
  }
  return batch;
}

}  // namespace millrace
