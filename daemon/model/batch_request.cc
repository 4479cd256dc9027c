#include "daemon/model/batch_request.h"

namespace millrace {
namespace {

struct PathOf {
  std::string operator()(const PathSource& source) const { return source.path; }
  std::string operator()(const InlineSource&) const { return {}; }
  std::string operator()(const RingSource&) const { return {}; }
  std::string operator()(const DatasetSource& source) const { return source.dataset->locate(source.sample).file; }
};

}  // namespace

std::string source_name(const SampleSource& source) {
  if (const auto* encoded = std::get_if<InlineSource>(&source))
    return "encoded bytes (" + to_text(Bytes{encoded->bytes.size()}) + ")";
  if (const auto* ring = std::get_if<RingSource>(&source)) return "ring bytes at " + std::to_string(ring->offset);
  return file_path(source);
}

DatasetMember member_of(const SampleSource& source) {
  const auto* sample = std::get_if<DatasetSource>(&source);
  return sample == nullptr ? DatasetMember{} : member_of(*sample->dataset, sample->sample);
}

std::string file_path(const SampleSource& source) {
  return std::visit(PathOf{}, source);
}

}  // namespace millrace
