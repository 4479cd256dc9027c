// Where each entry of the store lies: the only index that is asked, in memory, some 160 bytes an entry. In shards, each
// with a lock of its own that is held for no I/O. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "daemon/cache/disk/store_format.h"
#include "proto/base/mutex.h"

namespace millrace {

class StoreIndex {
 public:
  // A segment's number in this process, from 0; never used again.
  using SegmentNumber = std::uint32_t;
  struct Place {
    SegmentNumber segment = 0;
    std::uint32_t record = 0;
    StoredExtent extent;
  };
  struct Held {
    StoredFacts facts;
    std::uint64_t written = 0;
    std::uint32_t used = 0;
    Place place;
  };
  struct Named {
    CacheKey key;
    CachedKind kind = CachedKind::kIndex;
    Held held;
  };
  struct Sum {
    std::uint64_t entries = 0;
    std::uint64_t bytes = 0;  // of the entries themselves
  };

  // A use counts when the last one was so long ago: when it was is wanted by the hour.
  static constexpr std::uint32_t kUseCountsAfter = 3600;  // seconds

  // `now`: seconds since 1970. The use is noted; `counted` is set if it is one to write down.
  std::optional<Held> find(const CacheKey& key, CachedKind kind, std::uint32_t now, bool& counted);
  std::optional<Held> peek(const CacheKey& key, CachedKind kind) const;

  // Puts it in place of what is there. Returns the place of what is not there any more, if any.
  std::optional<Place> put(const CacheKey& key, CachedKind kind, const Held& held);
  // The same where `held` is not older than what is there; otherwise it is `held`'s place that comes back.
  std::optional<Place> put_if_newer(const CacheKey& key, CachedKind kind, const Held& held);
  std::optional<Place> erase(const CacheKey& key, CachedKind kind);
  // Only if it still lies there.
  bool erase_at(const CacheKey& key, CachedKind kind, const Place& place);
  // All that lie in these segments. Returns how many.
  std::uint64_t erase_segments(const std::unordered_set<SegmentNumber>& segments);

  Sum sum(CachedKind kind) const;
  // Of one shard, a copy.
  static constexpr std::size_t kShards = 64;
  std::vector<Named> shard(std::size_t number) const;

 private:
  struct Hash {
    std::size_t operator()(const CacheKey& key) const { return key.low; }
  };
  using Map = std::unordered_map<CacheKey, Held, Hash>;
  struct Shard {
    mutable Mutex mutex;
    std::array<Map, kCachedKinds> maps MILLRACE_GUARDED_BY(mutex);
    std::array<Sum, kCachedKinds> sums MILLRACE_GUARDED_BY(mutex);
  };

  static std::size_t number_of(CachedKind kind) { return static_cast<std::size_t>(kind); }
  static std::optional<Place> put(Shard& shard, const CacheKey& key, CachedKind kind, const Held& held)
      MILLRACE_REQUIRES(shard.mutex);
  static void take_off(Shard& shard, std::size_t kind, const Held& held) MILLRACE_REQUIRES(shard.mutex);
  Shard& shard_of(const CacheKey& key) { return shards_[key.high % kShards]; }
  const Shard& shard_of(const CacheKey& key) const { return shards_[key.high % kShards]; }

  std::array<Shard, kShards> shards_;
};

}  // namespace millrace
