// The seek indexes of all sessions and backends: in memory, and where there is a state directory also on disk, written
// by a thread of its own. A caller gets speed from another's index, never data: the bytes of the file are its own.
//
//   find() ──▶ memory ──▶ disk ──▶ none          store() ──▶ memory, and a queue ──▶ mr-index ──▶ disk
//
// Thread-safe.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "daemon/cache/disk_tier.h"
#include "daemon/cache/index_key.h"
#include "daemon/cache/memory_tier.h"
#include "daemon/observe/counters.h"
#include "proto/base/bytes.h"
#include "proto/base/mutex.h"

namespace millrace {

class SeekCache {
 public:
  struct Options {
    Bytes memory;           // 0: no indexes at all
    Bytes disk;             // 0: in memory only
    std::string state_dir;  // empty: the same
    // Whether the database at a path is sound, found out where it may crash; empty: not checked.
    std::function<bool(const std::string&)> check;
  };

  // The disk is checked and opened by the thread, which says in the log what hinders it; memory is there at once.
  SeekCache(Options options, Counters& counters);
  ~SeekCache();  // writes what waits

  // Waits until the disk is open or is known to stay shut, at most for so long. Before that nothing is found on it.
  void wait_for_disk(std::chrono::milliseconds patience);

  // For people: "in memory and in /var/lib/millrace/seek-index.mdb", "in memory only: there is no daemon.state_dir".
  // What hinders the disk later is in the log.
  std::string whereabouts() const;
  // Why they are in memory alone; empty: they are on disk as well.
  const std::string& hindrance() const { return hindrance_; }

  // The seed that key_of() takes. It stays the same for as long as the state directory is kept.
  std::uint64_t seed() const { return seed_; }

  SharedIndex find(const IndexKey& key);  // nullptr: none
  void store(const IndexKey& key, std::vector<std::uint8_t> index);
  void forget(const IndexKey& key);  // it was wrong

  Counters& counters() { return counters_; }

 private:
  void enqueue(DiskTier::Change change);
  void drop_pending() MILLRACE_REQUIRES(mutex_);
  void count(const MemoryTier::Change& change);
  void run_writer();
  void open_disk();
  void count(const DiskTier::Extent& extent);
  void write(const std::vector<DiskTier::Change>& changes);
  std::shared_ptr<DiskTier> disk() const;

  const Options options_;
  Counters& counters_;
  const std::uint64_t seed_;
  const std::string hindrance_;  // of the disk; empty: none
  MemoryTier memory_;
  mutable Mutex mutex_;
  Condition wake_;
  std::deque<DiskTier::Change> pending_ MILLRACE_GUARDED_BY(mutex_);
  std::shared_ptr<DiskTier> disk_ MILLRACE_GUARDED_BY(mutex_);  // shared: a lane may read while it is closed
  bool wants_disk_ MILLRACE_GUARDED_BY(mutex_) = false;
  bool stopping_ MILLRACE_GUARDED_BY(mutex_) = false;
  DiskTier::Extent counted_;  // of the disk, in the gauges. The writer's
  std::thread writer_;
};

}  // namespace millrace
