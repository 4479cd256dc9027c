// Tensor memory on the made-up device: one allocation, a slot after the other; the records lie apart, from the start of
// each slot in the segment. What the host makes for it is staged on the heap and uploaded by the device.
// Thread-bound(control).
#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <vector>

#include "daemon/memory/arena.h"
#include "tests/conformance/made_up_device.h"

namespace millrace {

class DeviceArena final : public Arena {
 public:
  // Both outlive it.
  DeviceArena(boost::asio::io_context& control, MadeUpDevice& device, std::uint32_t slots, Bytes slot_bytes);
  ~DeviceArena() override { device_.free(base_); }
  DeviceArena(const DeviceArena&) = delete;
  DeviceArena& operator=(const DeviceArena&) = delete;

  MemoryId memory() const override { return MadeUpDevice::kMemory; }
  Bytes slot_bytes() const override { return slot_bytes_; }
  std::uint64_t tensor_offset(SlotIndex slot) const override;
  std::uint64_t records_offset(Bytes) const override { return 0; }
  Destination destination(SlotIndex slot, SlotRange range) override;
  Destination stage(SlotIndex slot, SlotRange range) override;
  void finalize(SlotIndex slot, std::vector<Repair> repairs, std::function<void(Result<void>)> done) override;
  void forget(SlotIndex slot) override { staged_[raw(slot)].clear(); }
  std::uint64_t stagings() const { return stagings_; }  // how often something was
  HandedOver hand_over() const override { return {device_.descriptor(base_), bytes_}; }

 private:
  using Staged = std::map<std::uint64_t, std::vector<std::byte>>;  // by where it goes, from the slot's start

  boost::asio::io_context& control_;
  MadeUpDevice& device_;
  const Bytes slot_bytes_;
  const Bytes bytes_;
  const std::uint64_t base_;  // the device's address of slot 0
  std::uint64_t stagings_ = 0;
  std::vector<Staged> staged_;  // of each slot
};

}  // namespace millrace
