#include "client/src/holding.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace millrace {
inline namespace client {

Result<std::shared_ptr<Holding>> Holding::receive(HandoffConnection connection, Deadline deadline) {
  MILLRACE_TRY(HandoffConnection::ReceivedSegment segment, connection.receive_segment(deadline));
  struct stat status {};
  if (::fstat(segment.fd.get(), &status) != 0) return errno_error("the session's segment", errno);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size != segment.size.count || size < sizeof(shm::SegmentHeader))
    return Error{Code::kInternal, "the session's segment has " + to_text(Bytes{size}) + ", the daemon speaks of " +
                                      to_text(segment.size)};
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_POPULATE, segment.fd.get(), 0);
  if (at == MAP_FAILED) return errno_error("mapping " + to_text(Bytes{size}) + " of shared memory", errno);
  std::shared_ptr<Holding> holding(new Holding(std::move(connection), {static_cast<const std::byte*>(at), size}));
  MILLRACE_TRY_VOID(holding->check_header());
  holding->replies_ = std::move(segment.replies);
  return holding;
}

Holding::~Holding() {
  ::munmap(const_cast<std::byte*>(segment_.data()), segment_.size());
}

Result<void> Holding::check_header() {
  std::memcpy(&header_, segment_.data(), sizeof header_);
  if (header_.magic != shm::kSegmentMagic || header_.version != shm::kSegmentVersion)
    return Error{Code::kPrecondition, "the daemon's shared memory has layout version " +
                                          std::to_string(header_.version) + ", this library reads version " +
                                          std::to_string(shm::kSegmentVersion) +
                                          "; install libmillrace and millraced of the same version"};
  const std::uint64_t size = segment_.size();
  const bool fits = header_.segment_bytes == size && header_.slots > 0 &&
                    header_.slots <= size / sizeof(shm::SlotHeader) && header_.data_offset <= size &&
                    header_.slot_stride <= size && header_.slot_bytes <= header_.slot_stride &&
                    sizeof(shm::SegmentHeader) + header_.slots * sizeof(shm::SlotHeader) <= header_.data_offset &&
                    header_.slot_stride <= (size - header_.data_offset) / header_.slots;
  if (!fits)
    return Error{Code::kInternal,
                 "the segment's header contradicts itself; please report it with the daemon's version"};
  return {};
}

std::span<const std::byte> Holding::range(std::uint64_t offset, std::uint64_t bytes) const {
  if (offset > segment_.size() || bytes > segment_.size() - offset) return {};
  return segment_.subspan(offset, bytes);
}

bool Holding::holds(std::uint32_t slot, std::uint64_t generation) const {
  if (slot >= header_.slots) return false;
  // atomic_ref wants a mutable object; loads of these widths do not write, so a read-only mapping is fine.
  auto* at = const_cast<std::byte*>(segment_.data() + sizeof(shm::SegmentHeader) + slot * sizeof(shm::SlotHeader));
  auto& header = *reinterpret_cast<shm::SlotHeader*>(at);
  const auto state = std::atomic_ref(header.state).load(std::memory_order_acquire);
  return state == static_cast<std::uint32_t>(shm::SlotState::kSealed) &&
         std::atomic_ref(header.generation).load(std::memory_order_acquire) == generation;
}

Result<UniqueFd> Holding::request_ring(Bytes size, Deadline deadline) {
  MutexLock lock(mutex_);
  return connection_.request_ring(size, deadline);
}

void Holding::say_goodbye() noexcept {
  MutexLock lock(mutex_);
  connection_.say_goodbye();
}

}  // namespace client
}  // namespace millrace
