// One session's tensor memory on a GPU: a slot after the other in one allocation that the process of the GPU exports
// (cuda_memory.h). The processor cannot address it: what lanes of the CPU make waits on the heap until the slot is finalized.
// Thread-bound(control), but for its end.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "daemon/backend/cuda/cuda_memory.h"
#include "daemon/memory/arena.h"

namespace millrace {

class CudaArena final : public Arena {
 public:
  // `room` is of `memory`, made for `order`. `control` outlives the last finalize().
  CudaArena(boost::asio::io_context& control, std::shared_ptr<CudaMemory> memory,
            std::shared_ptr<const CudaMemory::Room> room, const TensorMemory::Order& order);
  CudaArena(const CudaArena&) = delete;
  CudaArena& operator=(const CudaArena&) = delete;

  MemoryId memory() const override { return memory_->id(); }
  Bytes slot_bytes() const override { return order_.slot_bytes; }
  std::uint32_t most_samples() const override { return order_.most_samples; }
  std::uint64_t tensor_offset(SlotIndex slot) const override;
  Destination destination(SlotIndex slot, SlotRange range) override;
  Destination stage(SlotIndex slot, SlotRange range) override;
  void finalize(SlotIndex slot, std::vector<Repair> repairs, std::function<void(Result<void>)> done) override;
  void forget(SlotIndex slot) override { staged_[raw(slot)].clear(); }
  HandedOver hand_over() const override { return {room_->descriptor(), bytes_}; }

 private:
  using Staged = std::map<std::uint64_t, std::vector<std::byte>>;  // by where it goes, from the slot's start

  boost::asio::io_context& control_;
  const std::shared_ptr<CudaMemory> memory_;            // shared: arenas may outlive the backend
  const std::shared_ptr<const CudaMemory::Room> room_;  // shared: see MadeArena
  const TensorMemory::Order order_;
  const Bytes bytes_;
  std::vector<Staged> staged_;  // of each slot
};

}  // namespace millrace
