// The cache's figures, by kind. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "daemon/cache/memory_tier.h"
#include "daemon/cache/policy/first_accesses.h"
#include "daemon/model/bytes/cached_bytes.h"
#include "daemon/observe/counters.h"

namespace millrace {

class CacheCounts {
 public:
  explicit CacheCounts(Counters& counters);

  void changed(const MemoryTier::Change& change);
  void missed(CachedKind kind) { counters_.add(MetricId::cache_misses, label(MetricId::cache_misses, kind)); }
  void rejected(CachedKind kind, std::uint64_t count = 1) {
    if (count > 0) counters_.add(MetricId::cache_rejected, label(MetricId::cache_rejected, kind), count);
  }
  // The disk: what was read of it, what is there more, what waits to be written, and what went for want of room.
  void from_disk(CachedKind kind) { counters_.add(MetricId::cache_disk_hits, label(MetricId::cache_disk_hits, kind)); }
  void on_disk(CachedKind kind, std::uint64_t more_entries, std::uint64_t more_bytes);
  void pending(CachedKind kind, std::int64_t more);
  void dropped_from_disk(std::uint64_t entries) { counters_.add(MetricId::cache_disk_evictions, entries); }
  // `made`: whether it could be made; the time counts in any case.
  void making(CachedKind kind, std::chrono::nanoseconds took, bool made = true);

  // An image was made, from what was kept of it or, `kind` nullptr, from its file alone. `bytes`: of the file. What hits
  // save is what first accesses of such files would have taken, less what they took themselves: it is returned,
  // below 0 where they took longer.
  std::chrono::nanoseconds made(const SourceInfo& info, const CachedKind* kind, std::uint64_t bytes,
                                std::chrono::nanoseconds took);
  // An image was made of a form that was made just before, of its file alone or with a seek index. It saved nothing, and
  // what it took, making() included, says nothing of what first accesses take.
  void made_of_new_form(bool by_index);

  Counters& counters() { return counters_; }

 private:
  LabelValue label(MetricId metric, CachedKind kind) const;
  void saved(CachedKind kind, std::chrono::microseconds time);

  Counters& counters_;
  static constexpr std::size_t kByKind = 12;  // metrics
  std::array<std::array<LabelValue, kCachedKinds>, kByKind> labels_{};
  FirstAccesses first_accesses_;
  // Microseconds saved and not told yet, below 0 where hits took longer. Writers: lanes. Publishes nothing but itself.
  std::array<std::atomic<std::int64_t>, kCachedKinds> untold_{};
};

}  // namespace millrace
