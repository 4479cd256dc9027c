#include "daemon/model/batch_request.h"

namespace millrace {
namespace {

struct NameOf {
  std::string operator()(const PathSource& source) const { return source.path; }
  std::string operator()(const InlineSource& source) const {
    return "encoded bytes (" + to_text(Bytes{source.bytes.size()}) + ")";
  }
  std::string operator()(const RingSource& source) const { return "ring bytes at " + std::to_string(source.offset); }
  std::string operator()(const DatasetSource& source) const {
    return source.dataset->root() + "/" + std::string(source.dataset->relative_path(source.sample));
  }
};

}  // namespace

std::string source_name(const SampleSource& source) {
  return std::visit(NameOf{}, source);
}

}  // namespace millrace
