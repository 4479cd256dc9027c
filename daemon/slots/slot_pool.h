// A session's slots: the only way by which tensors leave the daemon. The segment is a POSIX shared-memory object,
// unlinked before anybody else knows of it; the client gets a read-only descriptor.
//
//   free ──lease()──▶ filling ──seal()──▶ sealed ──release()──▶ free
//            ▲            └────abandon()────────────────────────▲
//            └─ generation + 1, so that a handle from before is stale, never somebody else's pixels
//
// Every edge is moved here; proto/shm/segment_layout.h says what of it a client sees.
//
// Thread-bound(control), but for the memory of a lease, which belongs to whoever the lease was given to until seal() or
// abandon().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/memory/segment.h"
#include "daemon/observe/counters.h"
#include "proto/base/ids.h"
#include "proto/base/result.h"
#include "proto/shm/segment_layout.h"

namespace millrace {

struct SlotLease {
  SlotIndex slot{};
  Generation generation{};
  MutableByteView memory;    // slot_bytes, page-aligned
  std::uint64_t offset = 0;  // of memory from the segment's start
};

class SlotPool {
 public:
  // `segment`: freshly created, of shm::segment_bytes(slots, slot_bytes). Writes the headers.
  SlotPool(std::shared_ptr<Segment> segment, SessionId session, std::uint32_t slots, Bytes slot_bytes,
           Counters& counters);
  ~SlotPool();
  SlotPool(const SlotPool&) = delete;
  SlotPool& operator=(const SlotPool&) = delete;

  std::uint32_t slots() const;
  std::uint32_t free_slots() const;
  Bytes slot_bytes() const;

  // nullopt: none is free (a state: try again after a release).
  std::optional<SlotLease> lease();

  // Publishes what was written: `tensor` bytes at the slot's start, `samples` records at `records_offset` from the
  // segment's start. Returns CLOCK_MONOTONIC in ns. REQUIRES: the slot is being filled under this lease.
  std::uint64_t seal(const SlotLease& lease, Bytes tensor, std::uint64_t records_offset, std::uint32_t samples);

  // The batch came to nothing. REQUIRES: as seal.
  void abandon(const SlotLease& lease);

  // The client's release. kPrecondition: a stale or unknown handle, nothing happens.
  Result<void> release(std::uint32_t slot_untrusted, std::uint64_t generation_untrusted);

  // What lanes hold while they write, so that the mapping outlives the session if need be.
  std::shared_ptr<Segment> segment() const { return segment_; }

 private:
  // What is true; the header in the segment only tells the client.
  struct Slot {
    shm::SlotState state = shm::SlotState::kFree;
    std::uint64_t generation = 0;
  };

  shm::SlotHeader& header(std::uint32_t slot);
  bool is_filling(const SlotLease& lease) const;
  void set_free(std::uint32_t slot);

  std::shared_ptr<Segment> segment_;  // shared with lanes: see segment()
  Counters& counters_;
  const Bytes slot_bytes_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;  // last in, first out: its pages are the warmest
};

}  // namespace millrace
