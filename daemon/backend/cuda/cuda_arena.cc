#include "daemon/backend/cuda/cuda_arena.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace millrace {

CudaArena::CudaArena(boost::asio::io_context& control, std::shared_ptr<CudaMemory> memory,
                     std::shared_ptr<const CudaMemory::Room> room, const TensorMemory::Order& order)
    : control_(control),
      memory_(std::move(memory)),
      room_(std::move(room)),
      order_(order),
      bytes_(order.bytes()),
      staged_(order.slots) {}

std::uint64_t CudaArena::tensor_offset(SlotIndex slot) const {
  return (order_.stride() * raw(slot)).count;
}

Destination CudaArena::destination(SlotIndex slot, SlotRange range) {
  staged_[raw(slot)].erase(range.offset);
  return {.memory = memory(),
          .offset = CudaPlace{room_->number(), tensor_offset(slot) + range.offset}.number(),
          .bytes = range.bytes};
}

Destination CudaArena::stage(SlotIndex slot, SlotRange range) {
  std::vector<std::byte>& bytes = staged_[raw(slot)][range.offset];
  bytes.assign(range.bytes.count, std::byte{0});
  return in_host_memory(bytes);
}

void CudaArena::finalize(SlotIndex slot, std::vector<Repair> repairs, std::function<void(Result<void>)> done) {
  const std::uint64_t start = tensor_offset(slot);
  std::vector<CudaMemory::Move> moves;
  for (auto& [offset, bytes] : staged_[raw(slot)])
    if (!bytes.empty()) moves.push_back({.to = start + offset, .bytes = {bytes.size()}, .uploaded = std::move(bytes)});
  staged_[raw(slot)].clear();
  for (const Repair& repair : repairs) {
    if (repair.to.bytes.count == 0) continue;
    moves.push_back({.to = start + repair.to.offset, .bytes = repair.to.bytes});
    if (repair.from) moves.back().from = start + *repair.from;
  }
  if (moves.empty()) return done({});
  memory_->move(room_->number(), std::move(moves), [&control = control_, done = std::move(done)](Result<void> moved) {
    boost::asio::post(control, [done, moved = std::move(moved)] { done(moved); });
  });
}

}  // namespace millrace
