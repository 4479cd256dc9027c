#include "tests/conformance/device_arena.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "proto/shm/segment_layout.h"

namespace millrace {

DeviceArena::DeviceArena(boost::asio::io_context& control, MadeUpDevice& device, std::uint32_t slots, Bytes slot_bytes)
    : control_(control),
      device_(device),
      slot_bytes_(slot_bytes),
      bytes_(shm::slot_stride(slot_bytes) * slots),
      base_(device.allocate(bytes_)),
      staged_(slots) {}

std::uint64_t DeviceArena::tensor_offset(SlotIndex slot) const {
  return (shm::slot_stride(slot_bytes_) * raw(slot)).count;
}

Destination DeviceArena::destination(SlotIndex slot, SlotRange range) {
  staged_[raw(slot)].erase(range.offset);
  return {.memory = memory(), .offset = base_ + tensor_offset(slot) + range.offset, .bytes = range.bytes};
}

Destination DeviceArena::stage(SlotIndex slot, SlotRange range) {
  std::vector<std::byte>& bytes = staged_[raw(slot)][range.offset];
  ++stagings_;
  bytes.assign(range.bytes.count, std::byte{0});
  return in_host_memory(bytes);
}

void DeviceArena::finalize(SlotIndex slot, std::vector<Repair> repairs, std::function<void(Result<void>)> done) {
  const std::uint64_t start = base_ + tensor_offset(slot);
  auto work = [start, staged = std::exchange(staged_[raw(slot)], {}),
               repairs = std::move(repairs)](MadeUpDevice::Engine& engine) {
    for (const auto& [offset, bytes] : staged) engine.upload(start + offset, bytes);
    for (const Repair& repair : repairs) {
      if (repair.from) {
        engine.move(start + repair.to.offset, start + *repair.from, repair.to.bytes);
      } else {
        engine.fill_with_zeroes(start + repair.to.offset, repair.to.bytes);
      }
    }
  };
  device_.enqueue(std::move(work), [&control = control_, done = std::move(done)](MadeUpDevice::End end) {
    boost::asio::post(control, [done, end] {
      if (end == MadeUpDevice::End::kDone) return done({});
      done(Error{Code::kUnavailable, "the device whose memory the session's tensors are in is lost: open another"});
    });
  });
}

}  // namespace millrace
