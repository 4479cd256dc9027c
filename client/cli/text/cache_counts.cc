#include "client/cli/text/cache_counts.h"

#include <algorithm>
#include <string>

#include "client/cli/text/progress.h"

namespace millrace::cli {
namespace {

const Metric* find(const Statistics& statistics, std::string_view name) {
  const auto found = std::ranges::find(statistics.metrics, name, &Metric::name);
  return found == statistics.metrics.end() ? nullptr : &*found;
}

double value_of(const Statistics& statistics, std::string_view name) {
  const Metric* const metric = find(statistics, name);
  return metric == nullptr ? 0 : metric->value;
}

// A figure by the label `kind`; 0 where it is not told.
double value_of(const Statistics& statistics, std::string_view name, std::string_view kind) {
  const Metric* const metric = find(statistics, name);
  if (metric == nullptr) return 0;
  const auto found = std::ranges::find(metric->values, kind, &LabelledValue::label);
  return found == metric->values.end() ? 0 : found->value;
}

std::string images(double count) {
  return grouped(static_cast<std::uint64_t>(std::max(0.0, count)));
}

}  // namespace

double CacheCounts::saved() const {
  double sum = 0;
  for (const CacheKind& kind : kinds) sum += kind.saved;
  return sum;
}

double CacheCounts::making() const {
  double sum = 0;
  for (const CacheKind& kind : kinds) sum += kind.making;
  return sum;
}

CacheCounts cache_counts(const Statistics& statistics) {
  CacheCounts counts{.known = find(statistics, "millrace_cache_hits_total") != nullptr,
                     .first = value_of(statistics, "millrace_first_touches_total"),
                     .evictions = value_of(statistics, "millrace_cache_evictions_total"),
                     .pending = value_of(statistics, "millrace_cache_disk_pending")};
  for (std::size_t i = 0; i < kCacheKinds.size(); ++i) {
    const auto value = [&](std::string_view name) { return value_of(statistics, name, kCacheKinds[i]); };
    counts.kinds[i] = {.hits = value("millrace_cache_hits_total"),
                       .misses = value("millrace_cache_misses_total"),
                       .rejected = value("millrace_cache_rejected_total"),
                       .made = value("millrace_cache_made_total"),
                       .evicted = value("millrace_cache_evictions_total"),
                       .saved = value("millrace_cache_saved_seconds_total"),
                       .making = value("millrace_cache_making_seconds_total"),
                       .entries = value("millrace_cache_entries"),
                       .bytes = value("millrace_cache_bytes"),
                       .disk_entries = value("millrace_cache_disk_entries"),
                       .disk_bytes = value("millrace_cache_disk_bytes")};
  }
  return counts;
}

CacheCounts since(const CacheCounts& before, CacheCounts now) {
  now.first -= before.first;
  now.evictions -= before.evictions;
  for (std::size_t i = 0; i < now.kinds.size(); ++i) {
    now.kinds[i].hits -= before.kinds[i].hits;
    now.kinds[i].misses -= before.kinds[i].misses;
    now.kinds[i].rejected -= before.kinds[i].rejected;
    now.kinds[i].made -= before.kinds[i].made;
    now.kinds[i].evicted -= before.kinds[i].evicted;
    now.kinds[i].saved -= before.kinds[i].saved;
    now.kinds[i].making -= before.kinds[i].making;
  }
  return now;
}

bool others_were_open(const Statistics& before, const Statistics& after) {
  const auto open = [](const Statistics& statistics) { return value_of(statistics, "millrace_sessions"); };
  const auto opened = [](const Statistics& statistics) {
    return value_of(statistics, "millrace_sessions_opened_total");
  };
  return open(before) > 1 || open(after) > 1 || opened(before) != opened(after);
}

std::string sources_text(const CacheCounts& counts) {
  const std::array<std::pair<double, const char*>, 4> parts{{{counts.first, " from the file alone"},
                                                             {counts.kinds[0].hits, " by a seek index"},
                                                             {counts.kinds[1].hits, " from packed coefficients"},
                                                             {counts.kinds[2].hits, " finished tensors"}}};
  std::string text;
  for (const auto& [count, what] : parts) {
    if (count > 0) text += (text.empty() ? "" : ", ") + images(count) + what;
  }
  return text;
}

}  // namespace millrace::cli
