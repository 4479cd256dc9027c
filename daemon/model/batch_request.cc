#include "daemon/model/batch_request.h"

namespace millrace {
namespace {

struct LocationOf {
  Dataset::Location operator()(const PathSource& source) const { return {source.path, source.range}; }
  Dataset::Location operator()(const InlineSource&) const { return {}; }
  Dataset::Location operator()(const RingSource&) const { return {}; }
  Dataset::Location operator()(const DatasetSource& source) const { return source.dataset->locate(source.sample); }
};

}  // namespace

std::string source_name(const SampleSource& source) {
  if (const auto* encoded = std::get_if<InlineSource>(&source))
    return "encoded bytes (" + to_text(Bytes{encoded->bytes.size()}) + ")";
  if (const auto* ring = std::get_if<RingSource>(&source)) return "ring bytes at " + std::to_string(ring->offset);
  Dataset::Location location = location_of(source);
  if (!location.range) return std::move(location.file);
  return location.file + '[' + std::to_string(location.range->offset) + '+' +
         std::to_string(location.range->length.count) + ']';
}

DatasetMember member_of(const SampleSource& source) {
  const auto* sample = std::get_if<DatasetSource>(&source);
  return sample == nullptr ? DatasetMember{} : member_of(*sample->dataset, sample->sample);
}

Dataset::Location location_of(const SampleSource& source) {
  return std::visit(LocationOf{}, source);
}

std::string file_path(const SampleSource& source) {
  return location_of(source).file;
}

}  // namespace millrace
