// Tensor memory in the session's segment, where the records lie behind each tensor. Backends write to it directly, so
// nothing is ever staged. Thread-bound(control).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "daemon/memory/arena.h"
#include "daemon/memory/copier.h"
#include "daemon/memory/segment.h"

namespace millrace {

class HostArena final : public Arena {
 public:
  // `segment`: of shm::segment_bytes(slots, slot_bytes), shared with the session, which is `user`'s. `copier` outlives the
  // last finalize().
  HostArena(std::shared_ptr<Segment> segment, std::uint32_t slots, Bytes slot_bytes, UserId user, Copier& copier);

  MemoryId memory() const override { return kHostMemory; }
  Bytes slot_bytes() const override { return slot_bytes_; }
  std::uint64_t tensor_offset(SlotIndex slot) const override;
  std::uint64_t records_offset(Bytes tensor) const override;
  Destination destination(SlotIndex slot, SlotRange range) override;
  Destination stage(SlotIndex slot, SlotRange range) override { return destination(slot, range); }
  void finalize(SlotIndex slot, std::vector<Repair> repairs, std::function<void(Result<void>)> done) override;
  void forget(SlotIndex) override {}
  HandedOver hand_over() const override { return {segment_->read_only_fd(), segment_->size()}; }

 private:
  const std::shared_ptr<Segment> segment_;
  const std::uint32_t slots_;
  const Bytes slot_bytes_;
  const UserId user_;
  Copier& copier_;
};

}  // namespace millrace
