#include "daemon/observe/counters.h"

namespace millrace {
namespace {

constexpr std::string_view label_text(MetricId metric) {
  switch (label_of(metric)) {
#define MILLRACE_TEXT(id, label) \
  case LabelId::id:              \
    return label;
    MILLRACE_LABELS(MILLRACE_TEXT)
#undef MILLRACE_TEXT
    case LabelId::kCount:
      break;
  }
  return "";
}

constexpr MetricRow kTable[] = {
#define MILLRACE_ROW(id, kind, unit, name, help) \
  {MetricId::id, MetricKind::kind, unit, name, help, label_text(MetricId::id)},
    MILLRACE_METRICS(MILLRACE_ROW)
#undef MILLRACE_ROW
};

constexpr HistogramRow kHistograms[] = {
#define MILLRACE_ROW(id, name, help) {HistogramId::id, name, help},
    MILLRACE_HISTOGRAMS(MILLRACE_ROW)
#undef MILLRACE_ROW
};

}  // namespace

std::span<const MetricRow> metric_table() {
  return kTable;
}

std::span<const HistogramRow> histogram_table() {
  return kHistograms;
}

std::vector<LabelledCount> Counters::labelled_counts(MetricId id) const {
  const LabelId label = label_of(id);
  if (label == LabelId::kCount) return {};
  return labelled_[static_cast<std::size_t>(label)].counts();
}

double Counters::in_unit(const MetricRow& row, std::int64_t stored) {
  const auto number = static_cast<double>(stored);
  return row.unit == "seconds" ? number * 1e-6 : number;
}

}  // namespace millrace
