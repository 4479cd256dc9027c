// What is kept on disk, for the next start: the store in the state directory, and mr-index, the thread that writes to
// it. Nobody waits for a write: what is to be written waits in a queue, and where that is full it is not written this
// time. When the disk refuses what is written, it is read on, and written to again a minute later.
//
//   write(), forget() ─▶ queue ─▶ mr-index, every 0.5 s ─▶ store          find() ─▶ the store's index in memory ─▶ pread()
//
// Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "daemon/cache/cache_counts.h"
#include "daemon/cache/cache_key.h"
#include "daemon/cache/disk/disk_store.h"
#include "daemon/cache/disk/seed_file.h"
#include "daemon/cache/memory_tier.h"
#include "daemon/model/cache_orders.h"
#include "proto/base/bytes.h"
#include "proto/base/mutex.h"

namespace millrace {

class DiskTier {
 public:
  struct Options {
    Bytes most;               // of the file system; 0: nothing is on disk
    std::string state_dir;    // empty: the same
    std::string hindrance{};  // why nothing is to be on disk; empty: it is
  };

  // Opened by the thread, which says in the log what hinders it.
  DiskTier(Options options, const StateSeed& seed, CacheCounts& counts);
  ~DiskTier();  // writes what waits

  // Waits until the store is open or is known to stay shut, at most for so long. Before that nothing is found in it.
  void wait(std::chrono::milliseconds patience);
  // The store's folder.
  std::string folder() const;
  // Why there is none; empty: there is. What hinders it later is in the log.
  const std::string& hindrance() const { return hindrance_; }

  // Whether so many bytes more may be made for the disk alone, as of a moment ago: nothing else goes for them. Without a
  // store: no.
  bool has_room_for(std::uint64_t bytes) const { return room_.load(std::memory_order_relaxed) >= bytes; }

  // Reads it. nullopt: it is not there, or cannot be read just now. A picture is a stable one.
  std::optional<CachedEntry> find(const CacheKey& key, CachedKind kind);
  // REQUIRES: the key is of a file's identity; a picture is stable.
  // Whether it waits to be written now.
  bool write(const CacheKey& key, CachedKind kind, CachedBytes bytes, const StoredFacts& facts);
  void forget(const CacheKey& key, CachedKind kind);

  struct Dropped {
    CacheDropped::Sum gone;
    std::uint64_t left = 0;  // entries
  };
  // Empties it, of what waits to be written too, and waits until the thread has done so. kPrecondition: there is no
  // store; says why.
  Result<Dropped> drop_all();
  // See CacheOrders.
  Result<CacheVerified> verify(const CacheOrders::Progress& progress);

 private:
  struct Change {
    CacheKey key;
    CachedKind kind = CachedKind::kIndex;
    CachedBytes bytes;  // nullptr: forget it
    StoredFacts facts;
  };

  bool enqueue(Change change);
  void drop_pending() MILLRACE_REQUIRES(mutex_);
  void run_writer();
  void open_store();
  bool has_many() const MILLRACE_REQUIRES(mutex_);
  bool gather(std::vector<Change>& changes);
  void drop_if_wanted(DiskStore& store, std::vector<Change>& changes);
  void tend(DiskStore& store);
  void count(const DiskStore& store, std::uint64_t evicted);
  void note_room(std::uint64_t taken, std::uint64_t evicted);
  void write(DiskStore& store, std::span<const Change> changes);
  void rest(const Error& why);
  std::shared_ptr<DiskStore> store() const;
  Error nothing_on_disk() const;

  const Options options_;
  const std::uint64_t seed_;
  const std::string hindrance_;
  CacheCounts& counts_;
  mutable Mutex mutex_;
  Condition wake_;
  std::deque<Change> pending_ MILLRACE_GUARDED_BY(mutex_);
  std::uint64_t pending_bytes_ MILLRACE_GUARDED_BY(mutex_) = 0;  // of pending_
  std::shared_ptr<DiskStore> store_ MILLRACE_GUARDED_BY(mutex_);
  bool wants_store_ MILLRACE_GUARDED_BY(mutex_) = false;
  bool stopping_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::uint64_t drops_wanted_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::uint64_t drops_done_ MILLRACE_GUARDED_BY(mutex_) = 0;  // those up to this one
  Dropped dropped_ MILLRACE_GUARDED_BY(mutex_);               // by the last one
  std::chrono::steady_clock::time_point rests_until_ MILLRACE_GUARDED_BY(mutex_);
  // Writer: the writer's thread. Readers: lanes. Publishes nothing but itself.
  std::atomic<std::uint64_t> room_{0};
  // The writer's.
  DiskStore::Extent counted_;  // in the gauges
  std::chrono::steady_clock::time_point tended_;
  bool failing_ = false;   // it is in the log
  bool was_full_ = false;  // something had to go, and half of it is not free yet
  std::thread writer_;
};

}  // namespace millrace
