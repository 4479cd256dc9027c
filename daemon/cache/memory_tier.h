// Seek indexes in memory, the least recently used ones forgotten over a bound. In shards, each with a lock of its own,
// so that lanes seldom meet. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "daemon/cache/index_key.h"
#include "proto/base/bytes.h"
#include "proto/base/mutex.h"

namespace millrace {

// An index's bytes (kernels/jpeg/seek_index.h). Shared: a lane may decode by it while it is forgotten.
using SharedIndex = std::shared_ptr<const std::vector<std::uint8_t>>;

class MemoryTier {
 public:
  struct Change {
    std::int64_t entries = 0;
    std::int64_t bytes = 0;
    std::int64_t evicted = 0;
  };

  // `most`: bytes of all indexes together, with what keeping them costs.
  explicit MemoryTier(Bytes most) : most_of_shard_(most.count / kShards) {}

  SharedIndex find(const IndexKey& key);  // nullptr: not here
  // Replaces what was there. One that is too large for its shard is not kept.
  Change put(const IndexKey& key, SharedIndex index);
  Change forget(const IndexKey& key);

 private:
  static constexpr std::size_t kShards = 16;
  static constexpr std::uint64_t kOverhead = 160;  // of an entry, in the list, the map and its allocation

  struct Entry {
    IndexKey key;
    SharedIndex index;
  };
  struct Hash {
    std::size_t operator()(const IndexKey& key) const { return key.low; }
  };
  struct Shard {
    Mutex mutex;
    std::list<Entry> entries MILLRACE_GUARDED_BY(mutex);  // the last used first
    std::unordered_map<IndexKey, std::list<Entry>::iterator, Hash> places MILLRACE_GUARDED_BY(mutex);
    std::uint64_t bytes MILLRACE_GUARDED_BY(mutex) = 0;
  };

  static std::uint64_t cost(const Entry& entry) { return entry.index->size() + kOverhead; }
  static void remove(Shard& shard, std::list<Entry>::iterator entry, Change& change) MILLRACE_REQUIRES(shard.mutex);
  Shard& shard_of(const IndexKey& key) { return shards_[key.high % kShards]; }

  const std::uint64_t most_of_shard_;
  std::array<Shard, kShards> shards_;
};

}  // namespace millrace
