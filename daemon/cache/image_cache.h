// What the daemon keeps of images for the next time, for all sessions and backends: seek indexes, packed forms,
// finished tensors. In memory, and where there is a state directory on disk too, written by a thread of its own.
//
//   fetch thread ─ find(identity) ─▶ memory ─▶ disk ─▶ none: it reads the file
//   lane ─ find(key, kind) ─▶ memory ─▶ disk ─▶ none
//   lane ─ store() ─▶ memory, and what is of a file: a queue ─▶ mr-index ─▶ disk
//
// Nobody gets from it what he might not read: a hit by identity is a file's that the caller has open, anything else
// goes by the bytes themselves, and their digest.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "daemon/cache/being_made.h"
#include "daemon/cache/cache_counts.h"
#include "daemon/cache/cache_key.h"
#include "daemon/cache/disk/disk_tier.h"
#include "daemon/cache/disk/seed_file.h"
#include "daemon/cache/memory_tier.h"
#include "daemon/cache/policy/access_history.h"
#include "daemon/cache/policy/use_table.h"
#include "daemon/model/bytes/cache_lookup.h"
#include "daemon/model/cache_orders.h"
#include "daemon/observe/counters.h"
#include "proto/base/bytes.h"

namespace millrace {

class ImageCache final : public CacheLookup, public CacheOrders {
 public:
  struct Options {
    Bytes memory;                    // of all kinds; 0: nothing is kept
    Bytes disk;                      // 0: in memory only
    std::string state_dir;           // empty: the same
    bool packed = true;              // whether packed forms are kept at all
    bool tensors = true;             // whether tensors are
    const UseTable* uses = nullptr;  // who uses which dataset; outlives the cache. nullptr: nobody tells
  };

  // The disk is opened by a thread, which says in the log what hinders it; memory is there at once.
  ImageCache(Options options, Counters& counters);
  ~ImageCache() override;  // writes what waits

  // Waits until the disk is open or is known to stay shut, at most for so long. Before that nothing is found on it.
  void wait_for_disk(std::chrono::milliseconds patience) { disk_.wait(patience); }

  // For people: "in memory and in /var/lib/millrace/cache", "in memory only: there is no daemon.state_dir".
  // What hinders the disk later is in the log.
  std::string whereabouts() const;
  // Why they are in memory alone; empty: they are on disk as well.
  const std::string& hindrance() const { return disk_.hindrance(); }

  // The seed that key_of() takes. It stays the same for as long as the state directory is kept.
  std::uint64_t seed() const { return seed_.value; }

  // A stable tensor, else a stable packed form, as far as they are wished for.
  std::optional<CachedImage> find(const FileIdentity& identity, const CacheWish& wish) override;

  // For lanes. nullopt: none. Of pictures the caller compares what they were made of, unless both are stable.
  // `member`: of the sample that it is wanted for.
  std::optional<CachedEntry> find(const CacheKey& key, CachedKind kind, const DatasetMember& member = {});
  // A file was asked for of which find(identity) had nothing. Once for each time, and before the lane looks for it itself.
  void asked(const CacheKey& key, const DatasetMember& member) { memory_.asked(key, member); }
  // `of_file`: what to write to disk beside what the entry has. nullopt: the key is not of a file's identity, and the
  // entry never leaves memory; nor does a picture that is not stable.
  // Whether there is a place for it, in memory or in what is to be written to disk.
  bool store(const CacheKey& key, CachedKind kind, CachedEntry entry,
             const std::optional<StoredFacts>& of_file = std::nullopt);
  void forget(const CacheKey& key, CachedKind kind);  // it was wrong

  // Whether a picture of this kind may be kept on a wish's behalf.
  bool keeps(CachedKind kind, const CacheWish& wish) const;
  bool keeps_pictures(const CacheWish& wish) const {
    return keeps(CachedKind::kPacked, wish) || keeps(CachedKind::kTensor, wish);
  }
  // What to make of an image of which no tensor is kept, and no packed form unless that is its `kept`. Notes that it was
  // accessed. `key`: the file's. `tensor_bytes`: of the tensor; 0: as many as would be let in.
  Advised advise(const EncodedImage& image, const CacheKey& key, std::size_t tensor_bytes = 0);
  // Whether it would find a place, in memory or on disk, that is no better taken. `bytes`: of the kept form, about.
  bool pays(const EncodedImage& image, const CacheKey& key, CachedKind kind, std::size_t bytes);
  // It cannot be packed: advise() says so no more, for a while.
  void cannot_be_packed(const CacheKey& key) { unpackable_.seen(key); }
  BeingMade& being_made() { return being_made_; }

  // With memory goes what is known of accesses: the next one is a first access, as after a start.
  Result<CacheDropped> drop(CacheTiers tiers) override;
  Result<CacheVerified> verify(const Progress& progress) override { return disk_.verify(progress); }

  CacheCounts& counts() { return counts_; }

 private:
  bool is_shared(const DatasetMember& member) const;
  WhyUnpacked unpackable(ImageFormat format, const CacheKey& key) const;
  std::optional<CachedEntry> find_on_disk(const CacheKey& key, CachedKind kind, const DatasetMember& member);

  const Options options_;
  CacheCounts counts_;
  const StateSeed seed_;
  MemoryTier memory_;
  AccessHistory accessed_, unpackable_;
  BeingMade being_made_;
  DiskTier disk_;
};

// What ImageCache::store() takes as `of_file`.
std::optional<StoredFacts> file_facts(const EncodedImage& image, CachedKind kind);

}  // namespace millrace
