// One session's shared-memory object, charged against the host's budget until the last user is gone. Created O_EXCL
// under a random name with mode 0600, filled (so that a full /dev/shm is an error here and not a SIGBUS later),
// reopened read-only, unlinked at once. Thread-safe once created (the bytes have their own rules: slot_pool.h).
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

 private:
  const Bytes limit_;
  // Writers: whoever creates or drops a segment, by compare-and-swap. Publishes nothing but itself.
  std::atomic<std::uint64_t> used_{0};
};

class Segment {
 public:
  // kExhausted: the budget, or /dev/shm has no room (with its size and how to enlarge it). kCancelled: `unwanted` was
  // stopped; it is looked at every 64 MiB. `budget` outlives the segment.
  static Result<std::shared_ptr<Segment>> create(Bytes size, SegmentBudget& budget, const StopFlag& unwanted = {});
  ~Segment();  // see revoke()
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  std::byte* data() const { return data_; }
  Bytes size() const { return size_; }
  // The session's client is gone or has to go: the object is truncated to nothing when the segment ends, so that a
  // client that keeps its mapping all the same holds no memory of ours. Without it (the daemon stops) views stay
  // readable.
  void revoke() { revoked_.store(true, std::memory_order_relaxed); }

  int read_only_fd() const { return read_only_.get(); }

 private:
  Segment(std::byte* data, Bytes size, UniqueFd writable, UniqueFd read_only, SegmentBudget& budget);

  std::byte* data_;
  Bytes size_;
  UniqueFd writable_;
  UniqueFd read_only_;
  SegmentBudget& budget_;
  // Writer: the control thread. Reader: whoever drops the segment last, after that.
  std::atomic<bool> revoked_{false};
};

}  // namespace millrace
