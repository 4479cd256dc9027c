// Seek indexes in an LMDB database, so that they outlive the daemon. Bounded in size by two generations: new indexes go
// into the young one; once that holds half of the bound, the old one is emptied and becomes the young one. An
// index that is found in the old one has to be written again by the caller, or it goes with it. README.md gives the
// format.
//
// LMDB survives the end of its writer at any moment. It does not survive every damage to its file: check_database()
// walks all of it, in a process of its own, before a daemon opens it. What comes out is bytes that an index's reader
// checks.
//
// find(): Thread-safe. All else: Thread-bound(the one thread that writes).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/cache/index_key.h"
#include "daemon/cache/memory_tier.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"

struct MDB_env;

namespace millrace {

class DiskTier {
 public:
  // nullptr as index: forget the key.
  struct Change {
    IndexKey key;
    SharedIndex index;
  };
  struct Extent {
    std::uint64_t entries = 0;
    std::uint64_t bytes = 0;
  };
  struct Found {
    SharedIndex index;
    bool old = false;  // soon to go, unless it is written again
  };

  // Makes the database where there is none. kInvalid: not one of ours, or damaged; set it aside. Otherwise: the folder
  // is missing or not writable, somebody else's, or has no room.
  static Result<std::unique_ptr<DiskTier>> open(const std::string& path, Bytes most);
  ~DiskTier();

  std::optional<Found> find(const IndexKey& key) const;

  // Writes all of them or none. Returns how many older ones were dropped to keep the bound.
  Result<std::uint64_t> write(std::span<const Change> changes);
  Extent extent() const;

  // Reads everything. false: damaged. A damaged database can end the process.
  bool walk_all() const;

 private:
  struct CloseEnvironment {
    void operator()(MDB_env* env) const;
  };
  DiskTier(MDB_env* env, Bytes most) : env_(env), most_(most) {}
  Result<void> prepare();

  std::unique_ptr<MDB_env, CloseEnvironment> env_;
  const Bytes most_;
  unsigned meta_ = 0, generations_[2] = {};  // LMDB's handles
};

// Opens the database at `path` and reads everything in it. As DiskTier::walk_all().
bool check_database(const std::string& path);

// The largest index that is kept on disk.
inline constexpr std::size_t kLargestOnDisk = std::size_t{1} << 20;

}  // namespace millrace
