// One segment of the store: a data file of entries one behind the other, and a table file of fixed-size records, one an
// entry, each appended when its entry's bytes are in the data file. The holder of the table's lock (flock()) may append
// to it or remove it; every daemon may read, mark records and punch holes. Descriptors are short in a daemon: files are
// open only while something is done to them, and for as long as the lock is held.
//
// read(), is_removed(): Thread-safe. All else: Thread-bound(the store's writer).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "daemon/cache/disk/store_folder.h"
#include "daemon/cache/disk/store_format.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

// As pread(); tests put failing ones in its place.
using ReadAt = ssize_t (*)(int file, void* to, std::size_t count, off_t at);

class StoreSegment {
 public:
  struct Shared {
    const StoreFolder& folder;  // outlives the segment
    std::uint64_t seed;
    ReadAt read_at;
  };
  struct Item {
    StoreRecord record;  // its place is append()'s to fill in
    ByteView bytes;
  };
  // nullopt: the record is no good.
  using Visit = std::function<void(std::uint32_t number, const std::optional<StoreRecord>&)>;

  // A table with more is not one of ours.
  static constexpr std::uint32_t kMostRecords = std::uint32_t{1} << 24;

  // A new one, empty and locked.
  static Result<std::shared_ptr<StoreSegment>> create(const Shared& shared);
  // One that is there. kInvalid: it is not sound, or half removed; see remove_unsound().
  static Result<std::shared_ptr<StoreSegment>> open(const Shared& shared, SegmentId id);
  // Removes both files of a segment that open() cannot use, unless somebody holds its lock.
  static void remove_unsound(const StoreFolder& folder, SegmentId id);

  SegmentId id() const { return id_; }
  std::uint64_t born() const { return born_; }  // nanoseconds since 1970

  // Fills `to` with what stands at `offset`. kExhausted: there is no descriptor now; other errors: it cannot be read, or
  // ends before.
  Result<void> read(std::uint32_t offset, MutableByteView to) const;

  // Every record behind those that were visited before, in order; one that is not whole yet waits for the next time.
  Result<void> visit_new(const Visit& visit);
  // All that visit_new() has visited, and what was appended.
  Result<void> visit_again(const Visit& visit) const;
  std::uint32_t records() const { return records_; }

  // Takes the lock, if nobody has it; true if it is this one's now and the segment is still there.
  bool lock();
  void unlock();
  bool locked() const { return static_cast<bool>(lock_); }
  // Whether append() may go on: no record is damaged, the data ends before `most`, and the table has room.
  bool takes_more(std::uint64_t most) const { return sound_ && data_end_ < most && records_ < kMostRecords; }

  // Writes all items, filling in their records' places. REQUIRES: locked(); takes_more(); the data stays below 4 GiB.
  // An error leaves none of them; the segment takes no more if that cannot be had.
  Result<void> append(std::span<Item> items);
  std::uint64_t data_end() const { return data_end_; }
  static std::uint64_t room_for(std::size_t length);  // at most, in the data file, with what aligns it

  // Marks a record as forgotten, or as used at a time.
  Result<void> mark_dead(std::span<const std::uint32_t> numbers);
  struct Use {
    std::uint32_t number;
    std::uint32_t used;
  };
  Result<void> mark_used(std::span<const Use> uses);
  // Gives the whole blocks within these back, where the file system can. They read as zeroes then. Puts them in order.
  void punch(std::vector<StoredExtent>& extents) const;

  // Of both files, on the file system. Looked up.
  std::uint64_t look_up_taken();
  std::uint64_t taken() const { return taken_; }  // as it was looked up last
  bool is_removed() const;                        // one of the files, by any process
  // REQUIRES: locked().
  void remove();

  // Bytes of entries that somebody could ask for. The store's to count.
  std::atomic<std::uint64_t> live_bytes = 0;
  std::atomic<std::uint64_t> live_entries = 0;

 private:
  StoreSegment(const Shared& shared, SegmentId id, std::uint64_t born) : shared_(shared), id_(id), born_(born) {}
  Result<void> visit(const UniqueFd& table, std::uint32_t from, std::uint32_t to, const Visit& visit) const;
  Result<void> write_data(std::span<Item> items);
  Result<void> write_records(std::span<const Item> items);
  Result<UniqueFd> open_table(int flags) const;
  Result<UniqueFd> open_data(int flags) const;

  const Shared shared_;
  const SegmentId id_;
  const std::uint64_t born_;
  UniqueFd lock_;  // the table, open for appending, with the lock
  UniqueFd data_;  // the same of the data, from the first append() on
  std::uint32_t records_ = 0;
  std::uint64_t data_end_ = 0;
  std::uint64_t taken_ = 0;
  bool sound_ = true;
};

}  // namespace millrace
