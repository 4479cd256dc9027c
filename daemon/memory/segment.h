// One session's shared-memory object, charged whole against the host's budget until the last user is gone. Created
// O_EXCL under a random name with mode 0600, reopened read-only, unlinked at once.
//
//   0                     filled()                                size()
//   ├─────────────────────┼───────────────────────────────────────┤
//   │ the object          │ addresses alone, nothing behind them  │
//   └─────────────────────┴───────────────────────────────────────┘
//                         fill_to() ──▶          ◀── give_up_rest()
//
// The object is only as long as it is filled, so whoever has its descriptor can take no memory by touching it, and a
// full /dev/shm is an error here and never a SIGBUS of whoever keeps to filled().
//
// Thread-safe once created, but for fill_to() and give_up_rest(), which are Thread-bound(whoever fills it). The bytes
// have their own rules: slot_pool.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "daemon/model/stop_flag.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

// How much shared memory all sessions may have together. Thread-safe.
class SegmentBudget {
 public:
  explicit SegmentBudget(Bytes limit) : limit_(limit) {}

  // kExhausted: says what is asked for, used and allowed, and which setting raises it.
  Result<void> charge(Bytes size);
  void refund(Bytes size);
  Bytes used() const { return {used_.load(std::memory_order_relaxed)}; }
  Bytes limit() const { return limit_; }

  // Of what is charged: what no page has been taken for yet.
  void promise(Bytes size) { promised_.fetch_add(size.count, std::memory_order_relaxed); }
  void keep_promise(Bytes size) { promised_.fetch_sub(size.count, std::memory_order_relaxed); }
  Bytes promised() const { return {promised_.load(std::memory_order_relaxed)}; }

 private:
  const Bytes limit_;
  // Writers: whoever creates or drops a segment, by compare-and-swap. Publishes nothing but itself.
  std::atomic<std::uint64_t> used_{0};
  // Writers: whoever fills or drops a segment. Publishes nothing but itself.
  std::atomic<std::uint64_t> promised_{0};
};

class Segment {
 public:
  // Charges `size` and makes the object; nothing of it is filled. kExhausted: the budget, or /dev/shm has no room
  // beside what other segments are still promised (with its size and how to enlarge it). `budget` outlives the segment.
  static Result<std::shared_ptr<Segment>> reserve(Bytes size, SegmentBudget& budget);

  // The same, filled whole. kCancelled: `unwanted` was stopped; it is looked at every 64 MiB.
  static Result<std::shared_ptr<Segment>> create(Bytes size, SegmentBudget& budget, const StopFlag& unwanted = {});
  ~Segment();  // see revoke()
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  std::byte* data() const { return data_; }
  Bytes size() const { return size_; }
  // From the start. Grows only; acquires the pages behind it, which are zeroed.
  Bytes filled() const { return {filled_.load(std::memory_order_acquire)}; }

  // Takes the pages up to `end` now, in one go: choose it near. kExhausted: /dev/shm has no room left; nothing has
  // changed. REQUIRES: end <= size().
  Result<void> fill_to(Bytes end);
  // No more comes: pages from `keep` on go back, and of the charge what is not kept. REQUIRES: nobody was told of
  // filled() bytes after `keep`; no fill_to() follows.
  void give_up_rest(Bytes keep);

  // The session's client is gone or has to go: the object is truncated to nothing when the segment ends, so that a
  // client that keeps its mapping all the same holds no memory of ours. Without it (the daemon stops) views stay
  // readable.
  void revoke() { revoked_.store(true, std::memory_order_relaxed); }

  int read_only_fd() const { return read_only_.get(); }

 private:
  Segment(std::byte* data, Bytes size, UniqueFd writable, UniqueFd read_only, SegmentBudget& budget);

  std::byte* data_;
  Bytes size_;
  Bytes charged_;  // size_, until the rest is given up
  UniqueFd writable_;
  UniqueFd read_only_;
  SegmentBudget& budget_;
  // Writer: whoever fills it. Readers: the control thread. Publishes that those pages are there.
  std::atomic<std::uint64_t> filled_{0};
  // Writer: the control thread. Reader: whoever drops the segment last, after that.
  std::atomic<bool> revoked_{false};
};

}  // namespace millrace
