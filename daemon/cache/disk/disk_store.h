// What the cache keeps on disk, beyond the daemon's life: entries of a few hundred bytes to some megabytes, each under a
// key and a kind. It takes orders: what is written and what goes, others decide, as long as there is room. What comes
// out is what was put in: an entry that is cut, changed, swapped or gone is a miss. Nothing is mapped. README.md has
// the files, and says what crashes, damage and other daemons do.
//
// find() asks memory alone; read() reads into memory that is the reader's then. The reader of an entry need not mind
// what happens to it meanwhile.
//
// find(), read(), forget(), extent(), for_each(), verify(): Thread-safe. All else: Thread-bound(the one thread that
// writes).
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "daemon/cache/disk/store_index.h"
#include "daemon/cache/disk/store_segment.h"

namespace millrace {

class DiskStore {
 public:
  struct Options {
    std::string folder;      // made if the one above it is there
    Bytes most;              // of the file system, for all daemons that share the folder
    std::uint64_t seed = 0;  // secret; a store that was written with another one is emptied
    ReadAt read_at = ::pread;
  };
  struct Entry {
    CacheKey key;
    CachedKind kind = CachedKind::kIndex;
    StoredFacts facts;
    ByteView bytes;
  };
  // Where an entry lies. Stays good whatever happens; reading may fail later.
  struct Placed {
    CacheKey key;
    CachedKind kind = CachedKind::kIndex;
    StoredFacts facts;
    std::size_t length = 0;
    bool old = false;  // among what goes first if nobody says what does: its segment is of the older half

   private:
    friend class DiskStore;
    StoreIndex::Place place;
    std::shared_ptr<const StoreSegment> segment;
  };
  struct Listed {
    CacheKey key;
    CachedKind kind = CachedKind::kIndex;
    StoredFacts facts;
    std::size_t length = 0;
    std::uint32_t used = 0;  // seconds since 1970, to the hour
  };
  struct Extent {
    std::array<StoreIndex::Sum, kCachedKinds> kinds;
    std::uint64_t entries = 0;
    std::uint64_t taken = 0;  // bytes of the file system, of all segments, as last looked at
  };
  struct Verified {
    std::uint64_t entries = 0;
    std::uint64_t wrong = 0;                                // forgotten now
    std::array<std::uint64_t, kCachedKinds> wrong_kinds{};  // the same, by kind
  };

  // What is beyond is not looked at.
  static constexpr std::size_t kMostSegments = 8192;

  // Reads the tables of all segments. Errors: StoreFolder::open().
  static Result<std::unique_ptr<DiskStore>> open(Options options);
  ~DiskStore();

  std::optional<Placed> find(const CacheKey& key, CachedKind kind);
  // With CachedBlock::kPadding behind a packed form. kExhausted: there is no descriptor for it now. Other errors: it cannot
  // be read or is not what was written, and is forgotten now.
  Result<CachedBytes> read(const Placed& placed);
  // Gone for find() at once, on disk with the next order. What is not there is not missed.
  void forget(const CacheKey& key, CachedKind kind);
  Extent extent() const;
  // A snapshot, a part at a time; `visit` may use the store.
  void for_each(const std::function<void(const Listed&)>& visit) const;
  // Reads everything. `progress`, if any, is told how many of how many are done; false from it ends it.
  Verified verify(const std::function<bool(std::uint64_t done, std::uint64_t all)>& progress);

  // Each replaces what was there under its key and kind. What is empty or over kLargestStored is passed over. Where
  // there is no room left the oldest segments go first: returns how many entries went with them. An error leaves the
  // store as it was, but for those; kExhausted: there is no room on the file system, or others take all that is allowed.
  Result<std::uint64_t> write(std::span<const Entry> entries);
  // To be called every few seconds: carries out what was forgotten, writes down what was used, takes over what other
  // daemons did to the folder, and gives room back. Returns how many entries went for want of room. An error: the folder
  // cannot be listed.
  Result<std::uint64_t> tend();
  // Empties the folder, but for what others are writing to.
  void drop_all();

 private:
  using SegmentNumber = StoreIndex::SegmentNumber;
  using Segments = std::unordered_map<SegmentNumber, std::shared_ptr<StoreSegment>>;
  using Appended = std::function<void(const StoreSegment::Item& item, const StoreIndex::Place& place)>;
  struct Used {
    SegmentNumber segment;
    StoreSegment::Use use;
  };

  DiskStore(Options options, StoreFolder folder);

  std::shared_ptr<StoreSegment> segment(SegmentNumber number) const;
  std::optional<Placed> placed(const StoreIndex::Named& entry) const;
  Result<CachedBytes> read_as_it_is(const Placed& placed) const;
  // Whether it was there until now: what was forgotten or moved meanwhile is not wrong.
  bool forget_wrong(const Placed& placed);
  void doom(const StoreIndex::Place& place);
  std::uint64_t taken() const;

  // Of the writer, from here on. What other daemons did:
  Result<void> look_around();
  void open_segment(SegmentId id);
  void take_in(SegmentNumber number, StoreSegment& segment);
  // What readers left to it:
  void carry_out_forgetting();
  void write_down_uses();
  // Room:
  void give_room_back();
  void move_out(SegmentNumber number, StoreSegment& segment);
  std::uint64_t let_go(const std::unordered_set<SegmentNumber>& numbers);
  std::uint64_t make_room(std::uint64_t bytes);
  void add_up_taken();
  // Appending:
  Result<void> append(std::span<StoreSegment::Item> items, const Appended& appended);
  Result<StoreSegment*> current();
  bool adopt(SegmentNumber number, StoreSegment& segment);
  Segments all_segments() const;

  const Options options_;
  const StoreFolder folder_;
  const StoreSegment::Shared shared_;
  const std::uint64_t segment_size_;
  StoreIndex index_;
  mutable Mutex mutex_;
  Segments segments_ MILLRACE_GUARDED_BY(mutex_);
  std::vector<StoreIndex::Place> doomed_ MILLRACE_GUARDED_BY(mutex_);
  std::vector<Used> used_ MILLRACE_GUARDED_BY(mutex_);
  std::uint64_t taken_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::uint64_t old_before_ MILLRACE_GUARDED_BY(mutex_) = 0;  // born
  SegmentNumber next_number_ = 0;
  std::optional<SegmentNumber> current_;  // that is appended to
};

}  // namespace millrace
