// The daemon's figures about seek indexes, and how they changed. They count all sessions together. Values.
#pragma once

#include <string>

#include "millrace/client.h"

namespace millrace::cli {

struct IndexCounts {
  double hits = 0, misses = 0, rejected = 0;  // counters
  double entries = 0, bytes = 0;              // in memory
  double disk_entries = 0, disk_bytes = 0;    // in the state directory
  double pending = 0;                         // made, and not yet written there
};

IndexCounts index_counts(const Statistics& statistics);
// Counters since `before`; the rest as it is now.
IndexCounts since(const IndexCounts& before, IndexCounts now);

}  // namespace millrace::cli
