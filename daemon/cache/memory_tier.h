// What is kept in memory, of all kinds under one bound. In shards, each with a lock, a policy and a share of the bound of
// its own, so that lanes and fetch threads seldom meet; blocks are freed outside of the locks. All that is kept of one
// file is in one shard.
//
// While there is room everything is let in. Then the policy decides (policy.h), by when samples of the datasets in use are
// wanted again. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "daemon/cache/cache_key.h"
#include "daemon/cache/policy/policy.h"
#include "daemon/cache/policy/use_table.h"
#include "daemon/model/bytes/cached_bytes.h"
#include "daemon/model/bytes/encoded_image.h"
#include "proto/base/bytes.h"
#include "proto/base/mutex.h"

namespace millrace {

// What keeping something of a file saves and costs, for the policy to compare: seconds of a lane. Reckoned from sizes, not
// from clocks: what is compared has to be the same when the host is busy, or entries of equal worth would push each other
// out. The unit, a byte of a file decoded for the first time, is a guess that cancels out. Plain functions.
struct Savings {
  float saves = 0;  // seconds that a hit saves, beyond what another kept form of the same file saves already
  float costs = 0;  // seconds that making it takes, beyond what is done anyway
};

// What stands in for a file already.
enum class Beside : std::uint8_t { kIndex, kPacked };

// Of what a first access takes an index saves a fifth, a packed form half of what the index leaves, and a tensor all but a
// copy. Packing takes as long as making one sample or two.
inline Savings savings_of(CachedKind kind, std::uint64_t file_bytes, Beside beside = Beside::kIndex) {
  constexpr float kSecondsAByte = 1e-8F;
  constexpr float kByIndex = 0.2F, kByPacked = 0.4F, kByTensor = 0.8F, kPacking = 1.5F;
  const float first_access = static_cast<float>(file_bytes) * kSecondsAByte;
  switch (kind) {
    case CachedKind::kIndex:
      return {.saves = kByIndex * first_access};
    case CachedKind::kPacked:
      return {.saves = kByPacked * first_access, .costs = kPacking * first_access};
    case CachedKind::kTensor:
      return {.saves = (beside == Beside::kPacked ? kByTensor - kByPacked : kByTensor) * first_access};
  }
  return {};
}

// What is kept, and of what it was made.
struct CachedEntry {
  CachedBytes bytes;
  SourceInfo info{};           // with the orientation that the file says. Of pictures only, as are the next two
  std::uint64_t contents = 0;  // digest_of() the file's bytes
  bool stable = false;         // see EncodedImage: nobody need compare `contents`
  DatasetMember member{};      // whose it is
  Savings savings{};           // of nothing it is worth nothing, and goes first
};

// Whether a look is the first one that is taken for a sample: the policy counts those.
enum class Look : std::uint8_t { kFirst, kFurther };

class MemoryTier {
 public:
  struct Change {
    struct Count {
      std::int64_t entries = 0, bytes = 0, evicted = 0;
    };
    std::array<Count, kCachedKinds> kinds{};
    bool kept = false;  // what was to be put

    Count& of(CachedKind kind) { return kinds[static_cast<std::size_t>(kind)]; }
  };
  // What could be made of a file.
  struct Plan {
    CachedKind kind = CachedKind::kPacked;
    std::size_t bytes = 0;  // about, with padding
    DatasetMember member{};
    Savings savings{};
  };

  // `most`: bytes of all together, with what keeping them costs. `uses` outlives this; nullptr: nobody tells.
  explicit MemoryTier(Bytes most, const UseTable* uses = nullptr);

  // `now`: seconds, as the uses are told in.
  static double seconds_now();

  // `member`: of the sample that it is wanted for.
  std::optional<CachedEntry> find(const CacheKey& key, CachedKind kind, const DatasetMember& member = {},
                                  Look look = Look::kFurther, double now = seconds_now());
  // A file was asked for of which nothing was found at the first look. `key`: the file's.
  void asked(const CacheKey& key, const DatasetMember& member, double now = seconds_now());
  bool has_room_for(const CacheKey& key, std::size_t bytes);
  // Whether it pays to make it, though others have to go for it where there is no room.
  bool is_worth_making(const CacheKey& key, const Plan& plan, double now = seconds_now());
  // Replaces what was there. Where there is no room, and nobody is worth less, it is not kept.
  Change put(const CacheKey& key, CachedKind kind, CachedEntry entry, double now = seconds_now());
  Change forget(const CacheKey& key, CachedKind kind);
  // Everything, or all of a kind.
  Change forget_all(std::optional<CachedKind> kind = std::nullopt);

  Bytes bytes() const { return {bytes_.load(std::memory_order_relaxed)}; }

 private:
  static constexpr std::uint64_t kOverhead = 256;  // of an entry, in the table, the map and its allocations

  struct Place {
    CacheKey key;
    CachedKind kind;
    friend bool operator==(const Place&, const Place&) = default;
  };
  struct Hash {
    std::size_t operator()(const Place& place) const { return place.key.low + static_cast<std::size_t>(place.kind); }
  };
  struct Held {
    Place place;
    CachedEntry entry;  // no bytes: the ticket is free
  };
  using Gone = std::vector<CachedBytes>;  // freed without the lock
  struct Shard {
    explicit Shard(const Policy::Options& options) : policy(options) {}

    Mutex mutex;
    Policy policy MILLRACE_GUARDED_BY(mutex);
    std::vector<Held> entries MILLRACE_GUARDED_BY(mutex);  // by ticket
    std::unordered_map<Place, Policy::Ticket, Hash> places MILLRACE_GUARDED_BY(mutex);
    std::shared_ptr<const ReuseForecast> forecast MILLRACE_GUARDED_BY(mutex) = std::make_shared<const ReuseForecast>();
    std::uint64_t forecast_version MILLRACE_GUARDED_BY(mutex) = 0;
    double now MILLRACE_GUARDED_BY(mutex) = 0;  // of the last call; it never goes back
  };

  static std::uint64_t cost(const CachedEntry& entry) { return entry.bytes->footprint() + kOverhead; }
  static DatasetMember known(const DatasetMember& member, const CacheKey& key);
  Shard& shard_of(const CacheKey& key) { return *shards_[key.shard() % shards_.size()]; }
  // Brings the shard's clock and forecast up to date.
  void update(Shard& shard, double now) MILLRACE_REQUIRES(shard.mutex);
  // Takes an entry out of the table, not out of the policy.
  void take(Shard& shard, Policy::Ticket ticket, Gone& gone, Change& change) MILLRACE_REQUIRES(shard.mutex);
  void remove(Shard& shard, const Place& place, Gone& gone, Change& change) MILLRACE_REQUIRES(shard.mutex);

  const UseTable* const uses_;
  std::atomic<std::uint64_t> bytes_{0};  // of all shards; each changes it under its own lock
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace millrace
