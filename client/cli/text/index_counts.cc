#include "client/cli/text/index_counts.h"

#include <string_view>

namespace millrace::cli {

IndexCounts index_counts(const Statistics& statistics) {
  const auto value = [&](std::string_view name) {
    for (const Metric& metric : statistics.metrics) {
      if (metric.name == name) return metric.value;
    }
    return 0.0;
  };
  return {.hits = value("millrace_index_hits_total"),
          .misses = value("millrace_index_misses_total"),
          .rejected = value("millrace_index_rejected_total"),
          .entries = value("millrace_index_entries"),
          .bytes = value("millrace_index_bytes"),
          .disk_entries = value("millrace_index_disk_entries"),
          .disk_bytes = value("millrace_index_disk_bytes"),
          .pending = value("millrace_index_disk_pending")};
}

IndexCounts since(const IndexCounts& before, IndexCounts now) {
  now.hits -= before.hits;
  now.misses -= before.misses;
  now.rejected -= before.rejected;
  return now;
}

}  // namespace millrace::cli
