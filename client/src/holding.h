// What a client holds of its session in the daemon: the segment, read-only, and the hand-off connection that keeps it
// there. Shared by the session and every view; gone with the last of them.
//
//   open:          │ headers │ addresses alone: zeros              │
//   map_slot(1):   │ headers │ zeros  │ slot 1, all pages │ zeros  │
//
// The daemon may still be filling the segment: its object is shorter then, and a page behind its end would be a SIGBUS.
// So a slot is mapped, once, when the first batch comes in it.
//
// Thread-safe, but for take_replies() and receive_memory(), which its maker calls.
// The mapped bytes follow proto/shm/segment_layout.h.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "client/src/device_memory.h"
#include "client/src/wire/handoff_connection.h"
#include "millrace/result.h"
#include "proto/base/mutex.h"
#include "proto/shm/segment_layout.h"

namespace millrace {
inline namespace client {

class Holding {
 public:
  // Maps the headers of the segment that arrives on `connection` and checks them. kPrecondition: of another version.
  static Result<std::shared_ptr<Holding>> receive(HandoffConnection connection, Deadline deadline);

  // Receives the memory on `gpu` that goes with it, and maps it. kInternal: other memory came than the daemon spoke of.
  Result<void> receive_memory(const VisibleGpu& gpu, Bytes size, Deadline deadline) MILLRACE_EXCLUDES(mutex_);
  // Where the tensors are then, and the segment's slots have the records alone; else nothing.
  DeviceMemory* device() const { return device_.get(); }

  // The reply socket that came with the segment, to the first who takes it.
  UniqueFd take_replies() { return std::move(replies_); }
  ~Holding();
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

  const shm::SegmentHeader& header() const { return header_; }  // a copy from when it was checked

  // Maps the slot, every page at once, unless it is. kInternal: there is no such slot. REQUIRES: the daemon has handed
  // out a batch in it.
  Result<void> map_slot(std::uint32_t slot) MILLRACE_EXCLUDES(slots_mutex_);

  std::uint32_t slots() const { return slots_.load(std::memory_order_relaxed); }
  void withdraw_to(std::uint32_t slots);  // the daemon has no room for more; never raises the number

  // Those bytes of the segment; empty if they do not lie in it.
  std::span<const std::byte> range(std::uint64_t offset, std::uint64_t bytes) const;

  // Whether the slot is sealed and of that generation right now. Acquires what the daemon published by sealing.
  bool holds(std::uint32_t slot, std::uint64_t generation) const;

  // See HandoffConnection.
  bool has_ended() MILLRACE_EXCLUDES(mutex_);
  Result<UniqueFd> request_ring(Bytes size, Deadline deadline) MILLRACE_EXCLUDES(mutex_);
  void say_goodbye() noexcept MILLRACE_EXCLUDES(mutex_);

 private:
  Holding(HandoffConnection connection, std::span<std::byte> segment, UniqueFd fd)
      : segment_(segment), fd_(std::move(fd)), connection_(std::move(connection)) {}
  Result<void> map_headers(Bytes filled);
  Result<void> map(std::uint64_t offset, std::uint64_t bytes);

  const std::span<std::byte> segment_;  // addresses, never written to
  const UniqueFd fd_;
  shm::SegmentHeader header_{};
  std::atomic<std::uint32_t> slots_{0};  // publishes nothing but itself
  Mutex slots_mutex_;
  std::vector<bool> mapped_ MILLRACE_GUARDED_BY(slots_mutex_);
  UniqueFd replies_;
  std::unique_ptr<DeviceMemory> device_;
  Mutex mutex_;
  HandoffConnection connection_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace client
}  // namespace millrace
