#include "daemon/memory/host_arena.h"

#include <utility>

#include "proto/shm/segment_layout.h"

namespace millrace {

HostArena::HostArena(std::shared_ptr<Segment> segment, std::uint32_t slots, Bytes slot_bytes, UserId user,
                     Copier& copier)
    : segment_(std::move(segment)), slots_(slots), slot_bytes_(slot_bytes), user_(user), copier_(copier) {}

std::uint64_t HostArena::tensor_offset(SlotIndex slot) const {
  return shm::slot_offset(slots_, slot_bytes_, raw(slot));
}

std::uint64_t HostArena::records_offset(Bytes tensor) const {
  return shm::records_offset(tensor).count;
}

Destination HostArena::destination(SlotIndex slot, SlotRange range) {
  const std::uint64_t offset = tensor_offset(slot) + range.offset;
  return {.memory = kHostMemory, .offset = offset, .bytes = range.bytes, .host = segment_->data() + offset};
}

void HostArena::finalize(SlotIndex slot, std::vector<Repair> repairs, std::function<void(Result<void>)> done) {
  if (repairs.empty()) return done({});
  std::vector<Copy> copies;
  copies.reserve(repairs.size());
  for (const Repair& repair : repairs) {
    Copy& copy = copies.emplace_back(Copy{destination(slot, repair.to).view(), {}});
    if (repair.from) copy.from = destination(slot, {*repair.from, repair.to.bytes}).view();
  }
  copier_.run(user_, std::move(copies), [segment = segment_, done = std::move(done)] { done({}); });
}

}  // namespace millrace
