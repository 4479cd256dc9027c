// One session's tensor memory: slots of equal size, on the host or on a device, and all that is done to their bytes but
// for a backend's work. The records are not in it: they lie in the session's segment, whatever memory the tensors are
// in.
//
//   destination() ──▶ a backend writes there ────────┐
//   stage() ──▶ a backend writes host bytes for it ──┴─▶ finalize(): uploads, repairs ──▶ done ──▶ sealed by the ledger
//
// A slot's bytes belong to the holder of its lease, a step after the other: backends until all their jobs are done, the
// arena until finalize()'s `done`, then the client until it releases the slot. The control thread never reads or writes
// them. The memory is given back when the last shared_ptr to its arena goes: the session's, and one a batch under way.
//
// Thread-bound(control).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "daemon/memory/destination.h"
#include "proto/base/bytes.h"
#include "proto/base/ids.h"
#include "proto/base/result.h"

namespace millrace {

// Bytes of a slot, from its first one.
struct SlotRange {
  std::uint64_t offset = 0;
  Bytes bytes;
  friend bool operator==(const SlotRange&, const SlotRange&) = default;
};

// Zeroes, or a copy of other bytes of the slot, which may overlap.
struct Repair {
  SlotRange to;
  std::optional<std::uint64_t> from;  // where the copied bytes begin; nullopt: zeroes
  friend bool operator==(const Repair&, const Repair&) = default;
};

// What a client maps or imports to reach the tensors. Borrowed from the arena.
struct HandedOver {
  int descriptor = -1;
  Bytes bytes;
};

class Arena {
 public:
  virtual ~Arena() = default;

  virtual MemoryId memory() const = 0;

  // What the session asked for: room for a tensor and its records, counted together even where they lie apart.
  virtual Bytes slot_bytes() const = 0;
  // Of which there is room for records in a slot, where they lie apart from the tensors.
  virtual std::uint32_t most_samples() const { return std::numeric_limits<std::uint32_t>::max(); }
  // Of a slot's first byte from the start of what hand_over() gives.
  virtual std::uint64_t tensor_offset(SlotIndex slot) const = 0;
  // Of a batch's first record from the start of its slot in the segment: 0, where nothing else is there.
  virtual std::uint64_t records_offset(Bytes /*tensor*/) const { return 0; }

  // Where a backend that can write this memory writes. Of destination() and stage() for a range the last one counts.
  virtual Destination destination(SlotIndex slot, SlotRange range) = 0;
  // Where any other writes: host bytes, zeroes at first, which finalize() brings to the range.
  virtual Destination stage(SlotIndex slot, SlotRange range) = 0;

  // Makes the slot's bytes final: brings what was staged to its place, then carries out `repairs` in order. Never
  // blocks: a thread of the arena's does it. `done` is called exactly once, on the control thread; at once if there is
  // nothing to do. kUnavailable: the device is lost, and the slot's bytes with it. REQUIRES: no backend writes to the
  // slot.
  virtual void finalize(SlotIndex slot, std::vector<Repair> repairs, std::function<void(Result<void>)> done) = 0;

  // The batch came to nothing: what was staged is let go. REQUIRES: as finalize().
  virtual void forget(SlotIndex slot) = 0;

  virtual HandedOver hand_over() const = 0;
};

}  // namespace millrace
