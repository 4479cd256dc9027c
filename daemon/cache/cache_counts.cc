#include "daemon/cache/cache_counts.h"

#include <algorithm>
#include <string_view>

namespace millrace {
namespace {

constexpr std::array<std::string_view, kCachedKinds> kNames{"index", "packed", "tensor"};

constexpr std::array kMetrics{MetricId::cache_hits,       MetricId::cache_misses,    MetricId::cache_rejected,
                              MetricId::cache_entries,    MetricId::cache_bytes,     MetricId::cache_evictions,
                              MetricId::cache_saved,      MetricId::cache_making,    MetricId::cache_disk_entries,
                              MetricId::cache_disk_bytes, MetricId::cache_disk_hits, MetricId::cache_made};

constexpr std::chrono::microseconds kMostSetOff = std::chrono::seconds(5);

}  // namespace

CacheCounts::CacheCounts(Counters& counters) : counters_(counters) {
  static_assert(kMetrics.size() == kByKind);
  for (std::size_t metric = 0; metric < kMetrics.size(); ++metric) {
    for (std::size_t kind = 0; kind < kCachedKinds; ++kind)
      labels_[metric][kind] = counters.value_of(kMetrics[metric], kNames[kind]);
  }
}

LabelValue CacheCounts::label(MetricId metric, CachedKind kind) const {
  const auto found = std::find(kMetrics.begin(), kMetrics.end(), metric);
  return labels_[static_cast<std::size_t>(found - kMetrics.begin())][static_cast<std::size_t>(kind)];
}

void CacheCounts::changed(const MemoryTier::Change& change) {
  for (std::size_t i = 0; i < kCachedKinds; ++i) {
    const auto kind = static_cast<CachedKind>(i);
    const MemoryTier::Change::Count& count = change.kinds[i];
    const auto add = [&](MetricId metric, std::int64_t n) {
      if (n != 0) counters_.add(metric, label(metric, kind), static_cast<std::uint64_t>(n));
    };
    add(MetricId::cache_entries, count.entries);
    add(MetricId::cache_bytes, count.bytes);
    add(MetricId::cache_evictions, count.evicted);
    if (kind != CachedKind::kIndex) continue;
    counters_.add(MetricId::index_entries, static_cast<std::uint64_t>(count.entries));
    counters_.add(MetricId::index_bytes, static_cast<std::uint64_t>(count.bytes));
    counters_.add(MetricId::index_evictions, static_cast<std::uint64_t>(count.evicted));
  }
}

void CacheCounts::on_disk(CachedKind kind, std::uint64_t more_entries, std::uint64_t more_bytes) {
  counters_.add(MetricId::cache_disk_entries, label(MetricId::cache_disk_entries, kind), more_entries);
  counters_.add(MetricId::cache_disk_bytes, label(MetricId::cache_disk_bytes, kind), more_bytes);
  if (kind != CachedKind::kIndex) return;
  counters_.add(MetricId::index_disk_entries, more_entries);
  counters_.add(MetricId::index_disk_bytes, more_bytes);
}

void CacheCounts::pending(CachedKind kind, std::int64_t more) {
  counters_.add(MetricId::cache_disk_pending, static_cast<std::uint64_t>(more));
  if (kind == CachedKind::kIndex) counters_.add(MetricId::index_disk_pending, static_cast<std::uint64_t>(more));
}

void CacheCounts::making(CachedKind kind, std::chrono::nanoseconds took, bool made) {
  if (made) counters_.add(MetricId::cache_made, label(MetricId::cache_made, kind));
  const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(took);
  counters_.add(MetricId::cache_making, label(MetricId::cache_making, kind), static_cast<std::uint64_t>(whole.count()));
}

std::chrono::nanoseconds CacheCounts::made(const SourceInfo& info, const CachedKind* kind, std::uint64_t bytes,
                                           std::chrono::nanoseconds took_exactly) {
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(took_exactly);
  if (kind == nullptr) {
    counters_.add(MetricId::cache_first_touches);
    first_accesses_.add(info, bytes, took);
    return std::chrono::nanoseconds{0};
  }
  counters_.add(MetricId::cache_hits, label(MetricId::cache_hits, *kind));
  const std::chrono::microseconds less = first_accesses_.expected(info, bytes) - took;
  saved(*kind, less);
  return less;
}

void CacheCounts::made_of_new_form(bool by_index) {
  if (by_index) return counters_.add(MetricId::cache_hits, label(MetricId::cache_hits, CachedKind::kIndex));
  counters_.add(MetricId::cache_first_touches);
}

// Crops differ, so that one hit takes longer than first accesses on average, and another less: only what is left of all
// together is told, and never taken back, for a counter does not fall. What slower hits take is set off up to a bound:
// else what they took longer on a busy host would hide for hours what they save on a quiet one.
void CacheCounts::saved(CachedKind kind, std::chrono::microseconds time) {
  std::atomic<std::int64_t>& untold = untold_[static_cast<std::size_t>(kind)];
  const std::int64_t sum = untold.fetch_add(time.count(), std::memory_order_relaxed) + time.count();
  if (sum < -kMostSetOff.count()) untold.store(-kMostSetOff.count(), std::memory_order_relaxed);
  if (sum <= 0) return;
  const std::int64_t left = untold.exchange(0, std::memory_order_relaxed);
  if (left > 0) {
    counters_.add(MetricId::cache_saved, label(MetricId::cache_saved, kind), static_cast<std::uint64_t>(left));
  } else {
    untold.fetch_add(left, std::memory_order_relaxed);
  }
}

}  // namespace millrace
