// The daemon's figures about what it keeps of images, by kind, and how they changed. They count all sessions together.
// A daemon that is older, or keeps no such figures, has none of them. Values.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "millrace/client.h"

namespace millrace::cli {

// As the daemon's label `kind` has them, what saves least first.
inline constexpr std::array<std::string_view, 3> kCacheKinds{"index", "packed", "tensor"};

struct CacheKind {
  double hits = 0, misses = 0, rejected = 0;  // counters: images
  double made = 0, evicted = 0;               // counters: forms made to be kept; let go of memory for others
  double saved = 0, making = 0;               // counters: seconds of lanes
  double entries = 0, bytes = 0;              // in memory
  double disk_entries = 0, disk_bytes = 0;    // in the state directory
};

struct CacheCounts {
  bool known = false;    // what follows was told at all
  double first = 0;      // counter: images made from their file alone
  double evictions = 0;  // counter: from memory
  double pending = 0;    // made, and not yet written to the state directory
  std::array<CacheKind, kCacheKinds.size()> kinds{};

  double saved() const;
  double making() const;
};

CacheCounts cache_counts(const Statistics& statistics);
// Counters since `before`; the rest as it is now.
CacheCounts since(const CacheCounts& before, CacheCounts now);

// Whether sessions beside the caller's one were open when either was told, or were opened in between: then what the
// daemon counted may be theirs.
bool others_were_open(const Statistics& before, const Statistics& after);

// "12 from the file alone, 40 by a seek index, 100 from packed coefficients, 15 finished tensors": those that are not 0.
std::string sources_text(const CacheCounts& counts);

}  // namespace millrace::cli
