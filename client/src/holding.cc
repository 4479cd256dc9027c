#include "client/src/holding.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace millrace {
inline namespace client {

Result<std::shared_ptr<Holding>> Holding::receive(HandoffConnection connection, Deadline deadline) {
  MILLRACE_TRY(HandoffConnection::ReceivedSegment segment, connection.receive_segment(deadline));
  struct stat status {};
  if (::fstat(segment.fd.get(), &status) != 0) return errno_error("the session's segment", errno);
  const Bytes filled{static_cast<std::uint64_t>(status.st_size)};
  if (filled > segment.size || filled.count < sizeof(shm::SegmentHeader))
    return Error{Code::kInternal,
                 "the session's segment has " + to_text(filled) + ", the daemon speaks of " + to_text(segment.size)};
  void* at = ::mmap(nullptr, segment.size.count, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return errno_error("mapping " + to_text(segment.size) + " of shared memory", errno);
  const std::span<std::byte> addresses{static_cast<std::byte*>(at), segment.size.count};
  std::shared_ptr<Holding> holding(new Holding(std::move(connection), addresses, std::move(segment.fd)));
  MILLRACE_TRY_VOID(holding->map_headers(filled));
  holding->replies_ = std::move(segment.replies);
  return holding;
}

Holding::~Holding() {
  if (device_) {
    const bool may_be_in_use = device_->failure().has_value();
    device_.reset();
    MutexLock lock(mutex_);
    if (!may_be_in_use) connection_.let_go();
  }
  ::munmap(segment_.data(), segment_.size());
}

Result<void> Holding::map_headers(Bytes filled) {
  MILLRACE_TRY_VOID(map(0, sizeof header_));
  std::memcpy(&header_, segment_.data(), sizeof header_);
  if (header_.magic != shm::kSegmentMagic || header_.version != shm::kSegmentVersion)
    return Error{Code::kPrecondition, "the daemon's shared memory has layout version " +
                                          std::to_string(header_.version) + ", this library reads version " +
                                          std::to_string(shm::kSegmentVersion) +
                                          "; install libmillrace and millraced of the same version"};
  const std::uint64_t size = segment_.size();
  const bool fits =
      header_.segment_bytes == size && header_.slots > 0 && header_.slots <= size / sizeof(shm::SlotHeader) &&
      header_.data_offset <= size && header_.slot_stride <= size && header_.slot_bytes <= header_.slot_stride &&
      sizeof(shm::SegmentHeader) + header_.slots * sizeof(shm::SlotHeader) <= header_.data_offset &&
      header_.slot_stride <= (size - header_.data_offset) / header_.slots && header_.data_offset <= filled.count;
  if (!fits)
    return Error{Code::kInternal,
                 "the segment's header contradicts itself; please report it with the daemon's version"};
  slots_.store(header_.slots, std::memory_order_relaxed);
  {
    MutexLock lock(slots_mutex_);
    mapped_.resize(header_.slots);
  }
  return map(0, header_.data_offset);
}

Result<void> Holding::map(std::uint64_t offset, std::uint64_t bytes) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));  // may be larger than the layout's
  const std::uint64_t first = offset / page * page;
  const std::uint64_t length = align_up(Bytes{offset + bytes}, page).count - first;
  const int flags = MAP_SHARED | MAP_FIXED | MAP_POPULATE;
  if (::mmap(segment_.data() + first, length, PROT_READ, flags, fd_.get(), static_cast<off_t>(first)) == MAP_FAILED)
    return errno_error("mapping " + to_text(Bytes{bytes}) + " of shared memory", errno);
  return {};
}

Result<void> Holding::map_slot(std::uint32_t slot) {
  MutexLock lock(slots_mutex_);
  if (slot >= mapped_.size())
    return Error{Code::kInternal, "the daemon speaks of slot " + std::to_string(slot) + ", the session has " +
                                      std::to_string(mapped_.size()) + "; please report it with the daemon's version"};
  if (mapped_[slot]) return {};
  MILLRACE_TRY_VOID(map(header_.data_offset + slot * header_.slot_stride, header_.slot_stride));
  mapped_[slot] = true;
  return {};
}

void Holding::withdraw_to(std::uint32_t slots) {
  std::uint32_t now = slots_.load(std::memory_order_relaxed);
  while (slots < now && !slots_.compare_exchange_weak(now, slots, std::memory_order_relaxed)) {
  }
}

std::span<const std::byte> Holding::range(std::uint64_t offset, std::uint64_t bytes) const {
  if (offset > segment_.size() || bytes > segment_.size() - offset) return {};
  return segment_.subspan(offset, bytes);
}

bool Holding::holds(std::uint32_t slot, std::uint64_t generation) const {
  if (slot >= header_.slots) return false;
  // atomic_ref wants a mutable object; loads of these widths do not write, so a read-only mapping is fine.
  auto* at = segment_.data() + sizeof(shm::SegmentHeader) + slot * sizeof(shm::SlotHeader);
  auto& header = *reinterpret_cast<shm::SlotHeader*>(at);
  const auto state = std::atomic_ref(header.state).load(std::memory_order_acquire);
  return state == static_cast<std::uint32_t>(shm::SlotState::kSealed) &&
         std::atomic_ref(header.generation).load(std::memory_order_acquire) == generation;
}

Result<UniqueFd> Holding::request_ring(Bytes size, Deadline deadline) {
  MutexLock lock(mutex_);
  return connection_.request_ring(size, deadline);
}

Result<void> Holding::receive_memory(const VisibleGpu& gpu, Bytes size, Deadline deadline) {
  MutexLock lock(mutex_);
  MILLRACE_TRY(const HandoffConnection::ReceivedMemory memory, connection_.receive_memory(deadline));
  if (memory.size != size || memory.device != gpu.uuid())
    return Error{Code::kInternal, "hand-off: " + to_text(memory.size) + " of " + cuda::uuid_text(memory.device) +
                                      " came, the daemon spoke of " + to_text(size) + " of " +
                                      cuda::uuid_text(gpu.uuid()) + "; please report it with the daemon's version"};
  Result<std::unique_ptr<DeviceMemory>> mapped = DeviceMemory::map(gpu, memory.fd, size);
  if (!mapped) {
    connection_.let_go();  // nothing is mapped, so another attempt need not be charged beside this one
    return std::move(mapped).error();
  }
  device_ = *std::move(mapped);
  return {};
}

bool Holding::has_ended() {
  MutexLock lock(mutex_);
  return connection_.has_ended();
}

void Holding::say_goodbye() noexcept {
  MutexLock lock(mutex_);
  connection_.say_goodbye();
}

}  // namespace client
}  // namespace millrace
