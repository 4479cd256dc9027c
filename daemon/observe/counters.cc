#include "daemon/observe/counters.h"

namespace millrace {
namespace {

constexpr MetricRow kTable[] = {
#define MILLRACE_ROW(id, kind, unit, name, help) {MetricId::id, MetricKind::kind, unit, name, help},
    MILLRACE_METRICS(MILLRACE_ROW)
#undef MILLRACE_ROW
};

}  // namespace

std::span<const MetricRow> metric_table() {
  return kTable;
}

double Counters::value(const MetricRow& row) const {
  const double stored_value = static_cast<double>(stored(row.id));
  return row.unit == "seconds" ? stored_value * 1e-6 : stored_value;
}

}  // namespace millrace
