#include "daemon/cache/memory_tier.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <limits>
#include <utility>

namespace millrace {
namespace {

constexpr std::size_t kForgottenAtOnce = 4'096;  // others may want the shard
constexpr Bytes kSmallestShare = 64_MiB;         // a shard of less would have no room for a large image

// Of files of no dataset, for about ten times as many as are kept.
constexpr std::uint64_t kBytesACounter = 8'192;
constexpr std::size_t kMostCounters = 1 << 20;

std::size_t shards_of(Bytes most) {
  return std::bit_floor(std::clamp<std::size_t>(most.count / kSmallestShare.count, 1, CacheKey::kShards));
}

std::uint32_t in_policy(std::uint64_t bytes) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace

MemoryTier::MemoryTier(Bytes most, const UseTable* uses) : uses_(uses) {
  const std::size_t shards = shards_of(most);
  const std::uint64_t share = most.count / shards;
  for (std::size_t i = 0; i < shards; ++i) {
    shards_.push_back(std::make_unique<Shard>(
        Policy::Options{.budget = Bytes{share},
                        .observed = std::min<std::size_t>(share / kBytesACounter, kMostCounters),
                        .seed = 2 * i + 1}));
  }
}

double MemoryTier::seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The policy tells files of no dataset apart by a number, too.
DatasetMember MemoryTier::known(const DatasetMember& member, const CacheKey& key) {
  if (member.dataset != DatasetNumber::kNone) return member;
  return {.dataset = DatasetNumber::kNone, .sample = static_cast<std::uint32_t>(key.low)};
}

void MemoryTier::update(Shard& shard, double now) {
  shard.now = std::max(shard.now, now);
  if (uses_ == nullptr) return;
  const std::uint64_t version = uses_->version();
  if (version == shard.forecast_version) return;
  shard.forecast_version = version;
  shard.forecast = uses_->forecast();
}

std::optional<CachedEntry> MemoryTier::find(const CacheKey& key, CachedKind kind, const DatasetMember& member,
                                            Look look, double now) {
  Shard& shard = shard_of(key);
  const MutexLock lock(shard.mutex);
  const auto found = shard.places.find({key, kind});
  if (found == shard.places.end()) return std::nullopt;
  CachedEntry& entry = shard.entries[found->second].entry;
  // What is asked for by its path, too, stays its dataset's.
  if (member.dataset != DatasetNumber::kNone && member != entry.member) {
    entry.member = member;
    shard.policy.accessed(found->second, member);
  }
  if (look == Look::kFirst) {
    update(shard, now);
    shard.policy.asked(entry.member, *shard.forecast, shard.now);
  }
  return entry;
}

void MemoryTier::asked(const CacheKey& key, const DatasetMember& member, double now) {
  Shard& shard = shard_of(key);
  const MutexLock lock(shard.mutex);
  update(shard, now);
  shard.policy.asked(known(member, key), *shard.forecast, shard.now);
}

bool MemoryTier::has_room_for(const CacheKey& key, std::size_t bytes) {
  Shard& shard = shard_of(key);
  const MutexLock lock(shard.mutex);
  return shard.policy.used().count + bytes + kOverhead <= shard.policy.budget().count;
}

bool MemoryTier::is_worth_making(const CacheKey& key, const Plan& plan, double now) {
  const Policy::Piece piece{.member = known(plan.member, key),
                            .kind = plan.kind,
                            .bytes = in_policy(plan.bytes + kOverhead),
                            .saves = plan.savings.saves,
                            .costs = plan.savings.costs};
  Shard& shard = shard_of(key);
  const MutexLock lock(shard.mutex);
  update(shard, now);
  return shard.policy.worth_making(piece, *shard.forecast, shard.now);
}

MemoryTier::Change MemoryTier::put(const CacheKey& key, CachedKind kind, CachedEntry entry, double now) {
  Change change;
  Gone gone;
  const std::uint64_t bytes = cost(entry);
  entry.member = known(entry.member, key);
  const Policy::Piece piece{.member = entry.member,
                            .kind = kind,
                            .bytes = in_policy(bytes),
                            .saves = entry.savings.saves,
                            .costs = entry.savings.costs};
  Shard& shard = shard_of(key);
  const MutexLock lock(shard.mutex);
  update(shard, now);
  remove(shard, {key, kind}, gone, change);
  if (piece.bytes != bytes) return change;  // larger than a policy knows
  std::optional<Policy::Ticket> ticket = shard.policy.found(piece, shard.now);
  if (!ticket) {
    std::vector<Policy::Ticket> others;
    ticket = shard.policy.admit(piece, *shard.forecast, shard.now, others);
    for (const Policy::Ticket other : others) {
      change.of(shard.entries[other].place.kind).evicted += 1;
      take(shard, other, gone, change);
    }
  }
  if (!ticket) return change;
  shard.entries.resize(std::max<std::size_t>(shard.entries.size(), *ticket + std::size_t{1}));
  shard.entries[*ticket] = {{key, kind}, std::move(entry)};
  shard.places.emplace(Place{key, kind}, *ticket);
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  change.of(kind).entries += 1;
  change.of(kind).bytes += static_cast<std::int64_t>(bytes);
  change.kept = true;
  return change;
}

MemoryTier::Change MemoryTier::forget(const CacheKey& key, CachedKind kind) {
  Change change;
  Gone gone;
  Shard& shard = shard_of(key);
  const MutexLock lock(shard.mutex);
  remove(shard, {key, kind}, gone, change);
  return change;
}

MemoryTier::Change MemoryTier::forget_all(std::optional<CachedKind> kind) {
  Change change;
  for (const std::unique_ptr<Shard>& shard : shards_) {
    for (std::size_t from = 0, all = 1; from < all; from += kForgottenAtOnce) {
      Gone gone;
      const MutexLock lock(shard->mutex);
      all = shard->entries.size();
      for (std::size_t i = from; i < std::min(all, from + kForgottenAtOnce); ++i) {
        const Held& held = shard->entries[i];
        if (held.entry.bytes != nullptr && (!kind || held.place.kind == *kind))
          remove(*shard, Place{held.place}, gone, change);
      }
    }
  }
  return change;
}

void MemoryTier::remove(Shard& shard, const Place& place, Gone& gone, Change& change) {
  const auto found = shard.places.find(place);
  if (found == shard.places.end()) return;
  shard.policy.removed(found->second);
  take(shard, found->second, gone, change);
}

void MemoryTier::take(Shard& shard, Policy::Ticket ticket, Gone& gone, Change& change) {
  Held& held = shard.entries[ticket];
  const std::uint64_t bytes = cost(held.entry);
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  change.of(held.place.kind).entries -= 1;
  change.of(held.place.kind).bytes -= static_cast<std::int64_t>(bytes);
  gone.push_back(std::move(held.entry.bytes));
  shard.places.erase(held.place);
  held = {};
}

}  // namespace millrace
