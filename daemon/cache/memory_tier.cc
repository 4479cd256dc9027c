#include "daemon/cache/memory_tier.h"

#include <iterator>
#include <utility>

namespace millrace {

SharedIndex MemoryTier::find(const IndexKey& key) {
  Shard& shard = shard_of(key);
  MutexLock lock(shard.mutex);
  const auto found = shard.places.find(key);
  if (found == shard.places.end()) return nullptr;
  shard.entries.splice(shard.entries.begin(), shard.entries, found->second);
  return found->second->index;
}

MemoryTier::Change MemoryTier::put(const IndexKey& key, SharedIndex index) {
  Change change = forget(key);
  Entry entry{key, std::move(index)};
  if (cost(entry) > most_of_shard_) return change;
  Shard& shard = shard_of(key);
  MutexLock lock(shard.mutex);
  if (shard.places.contains(key)) return change;  // another lane's, just now
  change.entries += 1;
  change.bytes += static_cast<std::int64_t>(cost(entry));
  shard.bytes += cost(entry);
  shard.entries.push_front(std::move(entry));
  shard.places.emplace(key, shard.entries.begin());
  while (shard.bytes > most_of_shard_) {
    remove(shard, std::prev(shard.entries.end()), change);
    ++change.evicted;
  }
  return change;
}

MemoryTier::Change MemoryTier::forget(const IndexKey& key) {
  Change change;
  Shard& shard = shard_of(key);
  MutexLock lock(shard.mutex);
  const auto found = shard.places.find(key);
  if (found != shard.places.end()) remove(shard, found->second, change);
  return change;
}

void MemoryTier::remove(Shard& shard, std::list<Entry>::iterator entry, Change& change) {
  change.entries -= 1;
  change.bytes -= static_cast<std::int64_t>(cost(*entry));
  shard.bytes -= cost(*entry);
  shard.places.erase(entry->key);
  shard.entries.erase(entry);
}

}  // namespace millrace
