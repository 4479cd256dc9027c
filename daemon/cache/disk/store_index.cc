#include "daemon/cache/disk/store_index.h"

#include <utility>

namespace millrace {
namespace {

bool same(const StoreIndex::Place& a, const StoreIndex::Place& b) {
  return a.segment == b.segment && a.record == b.record;
}

}  // namespace

std::optional<StoreIndex::Held> StoreIndex::find(const CacheKey& key, CachedKind kind, std::uint32_t now,
                                                 bool& counted) {
  Shard& shard = shard_of(key);
  const MutexLock lock(shard.mutex);
  Map& map = shard.maps[number_of(kind)];
  const auto found = map.find(key);
  if (found == map.end()) return std::nullopt;
  std::uint32_t& used = found->second.used;
  counted = now > used && now - used >= kUseCountsAfter;
  if (counted) used = now;
  return found->second;
}

std::optional<StoreIndex::Held> StoreIndex::peek(const CacheKey& key, CachedKind kind) const {
  const Shard& shard = shard_of(key);
  const MutexLock lock(shard.mutex);
  const Map& map = shard.maps[number_of(kind)];
  const auto found = map.find(key);
  return found == map.end() ? std::nullopt : std::optional(found->second);
}

std::optional<StoreIndex::Place> StoreIndex::put(Shard& shard, const CacheKey& key, CachedKind kind, const Held& held) {
  const std::size_t number = number_of(kind);
  const auto [entry, added] = shard.maps[number].try_emplace(key, held);
  Sum& sum = shard.sums[number];
  sum.bytes += held.place.extent.length;
  if (added) {
    ++sum.entries;
    return std::nullopt;
  }
  const Place before = std::exchange(entry->second, held).place;
  sum.bytes -= before.extent.length;
  return before;
}

std::optional<StoreIndex::Place> StoreIndex::put(const CacheKey& key, CachedKind kind, const Held& held) {
  Shard& shard = shard_of(key);
  const MutexLock lock(shard.mutex);
  return put(shard, key, kind, held);
}

std::optional<StoreIndex::Place> StoreIndex::put_if_newer(const CacheKey& key, CachedKind kind, const Held& held) {
  Shard& shard = shard_of(key);
  const MutexLock lock(shard.mutex);
  const Map& map = shard.maps[number_of(kind)];
  const auto found = map.find(key);
  if (found != map.end() && found->second.written > held.written) return held.place;
  return put(shard, key, kind, held);
}

std::optional<StoreIndex::Place> StoreIndex::erase(const CacheKey& key, CachedKind kind) {
  Shard& shard = shard_of(key);
  const MutexLock lock(shard.mutex);
  Map& map = shard.maps[number_of(kind)];
  const auto found = map.find(key);
  if (found == map.end()) return std::nullopt;
  const Place place = found->second.place;
  take_off(shard, number_of(kind), found->second);
  map.erase(found);
  return place;
}

bool StoreIndex::erase_at(const CacheKey& key, CachedKind kind, const Place& place) {
  Shard& shard = shard_of(key);
  const MutexLock lock(shard.mutex);
  Map& map = shard.maps[number_of(kind)];
  const auto found = map.find(key);
  if (found == map.end() || !same(found->second.place, place)) return false;
  take_off(shard, number_of(kind), found->second);
  map.erase(found);
  return true;
}

std::uint64_t StoreIndex::erase_segments(const std::unordered_set<SegmentNumber>& segments) {
  std::uint64_t erased = 0;
  for (Shard& shard : shards_) {
    const MutexLock lock(shard.mutex);
    for (std::size_t kind = 0; kind < kCachedKinds; ++kind) {
      Map& map = shard.maps[kind];
      for (auto entry = map.begin(); entry != map.end();) {
        if (!segments.contains(entry->second.place.segment)) {
          ++entry;
          continue;
        }
        take_off(shard, kind, entry->second);
        entry = map.erase(entry);
        ++erased;
      }
    }
  }
  return erased;
}

StoreIndex::Sum StoreIndex::sum(CachedKind kind) const {
  Sum all;
  for (const Shard& shard : shards_) {
    const MutexLock lock(shard.mutex);
    all.entries += shard.sums[number_of(kind)].entries;
    all.bytes += shard.sums[number_of(kind)].bytes;
  }
  return all;
}

std::vector<StoreIndex::Named> StoreIndex::shard(std::size_t number) const {
  const Shard& shard = shards_[number];
  std::vector<Named> copies;
  const MutexLock lock(shard.mutex);
  for (std::size_t kind = 0; kind < kCachedKinds; ++kind) {
    for (const auto& [key, held] : shard.maps[kind]) copies.push_back({key, static_cast<CachedKind>(kind), held});
  }
  return copies;
}

void StoreIndex::take_off(Shard& shard, std::size_t kind, const Held& held) {
  --shard.sums[kind].entries;
  shard.sums[kind].bytes -= held.place.extent.length;
}

}  // namespace millrace
