// A session's slots: the only way by which tensors leave the daemon. The segment is a POSIX shared-memory object,
// unlinked before anybody else knows of it; the client gets a read-only descriptor.
//
//   not ready ──ready_to()──▶ free ──lease()──▶ filling ──seal()──▶ sealed ──release()──▶ free
//       │                              ▲            └────abandon()────────────────────────▲
//       └──withdraw_rest()──▶ none     └─ generation + 1, so that a handle from before is stale, never somebody
//                                         else's pixels
//
// Every edge is moved here; proto/shm/segment_layout.h says what of it a client sees. Slots get ready in their order,
// as their memory is filled.
//
// Thread-bound(control), but for the memory of a lease, which belongs to the holder of the lease until seal() or
// abandon().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/memory/segment.h"
#include "daemon/observe/counters.h"
#include "proto/base/error.h"
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
  // `segment`: fresh, of shm::segment_bytes(slots, slot_bytes). Writes the headers, which must be filled; so many slots
  // are ready as it has filled by now.
  SlotPool(std::shared_ptr<Segment> segment, SessionId session, std::uint32_t slots, Bytes slot_bytes,
           Counters& counters);
  ~SlotPool();
  SlotPool(const SlotPool&) = delete;
  SlotPool& operator=(const SlotPool&) = delete;

  std::uint32_t slots() const;            // ready, or still to be
  std::uint32_t slots_not_ready() const;  // of these
  std::uint32_t slots_withdrawn() const { return withdrawn_; }
  std::uint32_t free_slots() const;
  Bytes slot_bytes() const;
  Bytes bytes() const;  // headers and slots; without those withdrawn

  // The first `slots` are filled by now.
  void ready_to(std::uint32_t slots);
  // Those that are not ready never will be, because of `why`. Once.
  void withdraw_rest(Error why);
  // REQUIRES: some were withdrawn.
  const Error& why_withdrawn() const { return *no_room_; }
  // An error where no slot is left at all, so that no batch can ever begin: why.
  Result<void> has_slots() const;

  // nullopt: none is ready and free (a state: try again after a release or ready_to()).
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

  std::uint32_t filled_slots() const;
  shm::SlotHeader& header(std::uint32_t slot);
  bool is_filling(const SlotLease& lease) const;
  void set_free(std::uint32_t slot);

  std::shared_ptr<Segment> segment_;  // shared with lanes: see segment()
  Counters& counters_;
  const std::uint32_t promised_;  // slots
  const Bytes slot_bytes_;
  std::uint32_t withdrawn_ = 0;
  std::optional<Error> no_room_;     // why
  std::vector<Slot> slots_;          // that are ready
  std::vector<std::uint32_t> free_;  // last in, first out: its pages are the warmest
};

}  // namespace millrace
