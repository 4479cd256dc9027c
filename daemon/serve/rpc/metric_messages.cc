#include "daemon/serve/rpc/metric_messages.h"

#include <chrono>
#include <limits>
#include <string>

namespace millrace {
namespace {

double seconds(std::chrono::microseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

v1::MetricKind kind_of(MetricKind kind) {
  return kind == MetricKind::kCounter ? v1::METRIC_KIND_COUNTER : v1::METRIC_KIND_GAUGE;
}

void describe(const Counters& counters, const MetricRow& row, v1::Metric& metric) {
  metric.set_name(std::string(row.name));
  metric.set_kind(kind_of(row.kind));
  metric.set_unit(std::string(row.unit));
  metric.set_help(std::string(row.help));
  metric.set_value(counters.value(row));
  metric.set_label(std::string(row.label));
  for (const LabelledCount& one : counters.labelled_counts(row.id)) {
    v1::LabelledValue& value = *metric.add_values();
    value.set_label(one.value);
    value.set_value(Counters::in_unit(row, one.count));
  }
}

void describe(const Histogram& histogram, const HistogramRow& row, v1::Metric& metric) {
  metric.set_name(std::string(row.name));
  metric.set_kind(v1::METRIC_KIND_HISTOGRAM);
  metric.set_unit("seconds");
  metric.set_help(std::string(row.help));
  metric.set_sum(seconds(histogram.sum()));
  const Histogram::Counts counts = histogram.counts();
  std::uint64_t all = 0;
  for (const std::uint64_t count : counts) all += count;
  metric.set_value(static_cast<double>(all));
  std::uint64_t so_far = 0;
  for (std::size_t i = 0; i < Histogram::kBuckets; ++i) {
    so_far += counts[i];
    v1::Bucket& bucket = *metric.add_buckets();
    const bool last = i + 1 == Histogram::kBuckets;
    bucket.set_below(last ? std::numeric_limits<double>::infinity() : seconds(Histogram::bound(i)));
    bucket.set_count(so_far);
  }
}

}  // namespace

void describe(const Counters& counters, v1::GetStatisticsReply& statistics) {
  for (const MetricRow& row : metric_table()) describe(counters, row, *statistics.add_metrics());
  for (const HistogramRow& row : histogram_table())
    describe(counters.histogram(row.id), row, *statistics.add_metrics());
}

}  // namespace millrace
