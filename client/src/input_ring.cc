#include "millrace/input_ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "client/src/ring.h"
#include "proto/shm/segment_layout.h"

namespace millrace {
inline namespace client {
namespace {

constexpr std::uint64_t kAlignment = 64;

std::uint64_t granted(std::uint64_t size) {
  return align_up(Bytes{size}, kAlignment).count;
}

}  // namespace

Result<Bytes> whole_pages(Bytes size) {
  const Bytes pages = align_up(size, shm::kPageBytes);
  if (pages < size || pages == Bytes{})
    return Error{Code::kInvalid, "ring: " + to_text(size) + " is no size for a ring"};
  return pages;
}

Result<std::shared_ptr<InputRing::Shared>> InputRing::Shared::map(int memfd, Bytes size) {
  // So that a full host is an error here and not a SIGBUS while writing; and this process pays for the memory.
  if (const int error = ::posix_fallocate(memfd, 0, static_cast<off_t>(size.count)); error != 0) {
    return Error{Code::kExhausted, errno_error("reserving " + to_text(size) + " for the input ring", error).message +
                                       "; open another session for a smaller one"};
  }
  void* at = ::mmap(nullptr, size.count, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
  if (at == MAP_FAILED) return errno_error("mapping the input ring", errno);
  return std::shared_ptr<Shared>(new Shared({static_cast<std::byte*>(at), size.count}));
}

InputRing::Shared::~Shared() {
  ::munmap(memory_.data(), memory_.size());
}

std::optional<std::uint64_t> InputRing::Shared::take(std::uint64_t size) {
  const std::uint64_t wanted = granted(size);
  MutexLock lock(mutex_);
  const auto extent = std::find_if(free_.begin(), free_.end(), [&](const auto& free) { return free.second >= wanted; });
  if (extent == free_.end()) return std::nullopt;
  const auto [offset, length] = *extent;
  free_.erase(extent);
  if (length > wanted) free_.emplace(offset + wanted, length - wanted);
  return offset;
}

void InputRing::Shared::give_back(std::uint64_t offset, std::uint64_t size) {
  MutexLock lock(mutex_);
  auto here = free_.emplace(offset, granted(size)).first;
  if (const auto next = std::next(here); next != free_.end() && here->first + here->second == next->first) {
    here->second += next->second;
    free_.erase(next);
  }
  if (here == free_.begin()) return;
  if (const auto before = std::prev(here); before->first + before->second == here->first) {
    before->second += here->second;
    free_.erase(here);
  }
}

Result<RingRoom> InputRing::allocate(std::size_t size) {
  if (size == 0 || size > shared_->memory().size())
    return Error{Code::kInvalid, "ring: " + to_text(Bytes{size}) + " of room in a ring of " + to_text(this->size()) +
                                     "; open a larger one"};
  const auto offset = shared_->take(size);
  if (!offset)
    return Error{Code::kExhausted, "ring: no " + to_text(Bytes{size}) +
                                       " free in one piece for now; take finished batches and try again, "
                                       "or open a larger ring than " +
                                       to_text(this->size())};
  return RingRoom(std::make_shared<RingRoom::Block>(shared_, *offset, size));
}

Bytes InputRing::size() const noexcept {
  return {shared_->memory().size()};
}

std::span<std::byte> RingRoom::bytes() const noexcept {
  return block_ ? block_->ring->memory().subspan(block_->offset, block_->size) : std::span<std::byte>();
}

std::uint64_t RingRoom::offset() const noexcept {
  return block_ ? block_->offset : 0;
}

}  // namespace client
}  // namespace millrace
