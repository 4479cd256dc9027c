// What a client holds of its session in the daemon: the segment, mapped once, read-only, and the hand-off connection
// that keeps it there. Shared by the session and every view; gone with the last of them.
//
// Immutable but for request_ring() and say_goodbye(), which are Thread-safe, and take_replies(), which its maker calls.
// The mapped bytes follow proto/shm/segment_layout.h.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "client/src/handoff_connection.h"
#include "millrace/result.h"
#include "proto/base/mutex.h"
#include "proto/shm/segment_layout.h"

namespace millrace {
inline namespace client {

class Holding {
 public:
  // Maps the segment that arrives on `connection`, every page at once, and checks its header. kPrecondition: of another
  // version.
  static Result<std::shared_ptr<Holding>> receive(HandoffConnection connection, Deadline deadline);

  // The reply socket that came with the segment, to the first who takes it; none if the daemon gave none.
  UniqueFd take_replies() { return std::move(replies_); }
  ~Holding();
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

  const shm::SegmentHeader& header() const { return header_; }  // a copy from when it was checked

  // Those bytes of the segment; empty if they do not lie in it.
  std::span<const std::byte> range(std::uint64_t offset, std::uint64_t bytes) const;

  // Whether the slot is sealed and of that generation right now. Acquires what the daemon published by sealing.
  bool holds(std::uint32_t slot, std::uint64_t generation) const;

  // See HandoffConnection.
  Result<UniqueFd> request_ring(Bytes size, Deadline deadline) MILLRACE_EXCLUDES(mutex_);
  void say_goodbye() noexcept MILLRACE_EXCLUDES(mutex_);

 private:
  Holding(HandoffConnection connection, std::span<const std::byte> segment)
      : segment_(segment), connection_(std::move(connection)) {}
  Result<void> check_header();

  std::span<const std::byte> segment_;
  shm::SegmentHeader header_{};
  UniqueFd replies_;
  Mutex mutex_;
  HandoffConnection connection_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace client
}  // namespace millrace
