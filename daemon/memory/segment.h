// One session's shared-memory object. It has its charge (Resource::kSegments) until the last user is gone. A
// file of mode 0600 in /dev/shm that never has a name, opened once for writing and once for reading.
//
//   0                     filled()                                size()
//   ├─────────────────────┼───────────────────────────────────────┤
//   │ the object          │ addresses alone, nothing behind them  │
//   └─────────────────────┴───────────────────────────────────────┘
//                         fill_to() ──▶          ◀── give_up_rest()
//
// The object is only as long as it is filled, so a holder of its descriptor can take no memory by touching it, and a
// full /dev/shm is an error here and never a SIGBUS of a process that keeps to filled().
//
// Thread-safe once created, but for fill_to() and give_up_rest(), which are Thread-bound(its filler). The bytes
// have their own rules: slot_pool.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "daemon/admit/ledger.h"
#include "daemon/model/stop_flag.h"
#include "proto/base/bytes.h"
#include "proto/base/result.h"
#include "proto/base/unique_fd.h"

namespace millrace {

// What segments are to be filled with and no page has been taken for yet: it is not free for another one. Thread-safe.
class PromisedMemory {
 public:
  void promise(Bytes size) { bytes_.fetch_add(size.count, std::memory_order_relaxed); }
  void keep(Bytes size) { bytes_.fetch_sub(size.count, std::memory_order_relaxed); }
  Bytes bytes() const { return {bytes_.load(std::memory_order_relaxed)}; }

 private:
  // Writers: threads that make, fill or drop a segment. Publishes nothing but itself.
  std::atomic<std::uint64_t> bytes_{0};
};

class Segment {
 public:
  // Makes the object, of as many bytes as are charged; nothing of it is filled. kExhausted: /dev/shm has no room beside
  // what other segments are still promised (with its size and how to enlarge it). `promised` outlives the segment.
  static Result<std::shared_ptr<Segment>> reserve(Charge charge, PromisedMemory& promised);

  // The same, filled whole. kCancelled: `unwanted` was stopped; it is looked at every 64 MiB.
  static Result<std::shared_ptr<Segment>> create(Charge charge, PromisedMemory& promised,
                                                 const StopFlag& unwanted = {});
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

  // Its last user is gone: the charge goes back now, so that who closes a session can open another at once. Its memory
  // does when it is destroyed, which takes a while where it is large.
  void let_go() { charge_.refund(); }

  int read_only_fd() const { return read_only_.get(); }

 private:
  Segment(std::byte* data, UniqueFd writable, UniqueFd read_only, Charge charge, PromisedMemory& promised);

  Charge charge_;  // of size_, until the rest is given up or the last user is gone
  bool rest_given_up_ = false;
  std::byte* data_;
  Bytes size_;
  UniqueFd writable_;
  UniqueFd read_only_;
  PromisedMemory& promised_;
  // Writer: the thread that fills it. Readers: the control thread. Publishes that those pages are there.
  std::atomic<std::uint64_t> filled_{0};
  // Writer: the control thread. Reader: the thread that drops the segment last, after that.
  std::atomic<bool> revoked_{false};
};

}  // namespace millrace
