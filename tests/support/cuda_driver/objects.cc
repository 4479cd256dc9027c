#include "tests/support/cuda_driver/objects.h"

namespace millrace::sim {

namespace {

std::uintptr_t page_of(const std::byte* at) {
  return reinterpret_cast<std::uintptr_t>(at) / kPage;
}

}  // namespace

bool PinnedMemory::add(const void* at, std::size_t size) {
  const auto* const begin = static_cast<const std::byte*>(at);
  MutexLock lock(mutex_);
  const auto next = ranges_.upper_bound(begin);
  if (next != ranges_.end() && page_of(next->first) <= page_of(begin + size - 1)) return false;
  if (next != ranges_.begin()) {
    const auto before = std::prev(next);
    if (page_of(before->first + before->second - 1) >= page_of(begin)) return false;
  }
  ranges_[begin] = size;
  return true;
}

bool PinnedMemory::remove(const void* at) {
  MutexLock lock(mutex_);
  return ranges_.erase(static_cast<const std::byte*>(at)) == 1;
}

std::size_t PinnedMemory::size_of(const void* at) const {
  MutexLock lock(mutex_);
  const auto found = ranges_.find(static_cast<const std::byte*>(at));
  return found == ranges_.end() ? 0 : found->second;
}

bool PinnedMemory::holds(const void* at, std::size_t size) const {
  const auto* const begin = static_cast<const std::byte*>(at);
  MutexLock lock(mutex_);
  const auto next = ranges_.upper_bound(begin);
  if (next == ranges_.begin()) return false;
  const auto found = std::prev(next);
  return begin + size <= found->first + found->second;
}

cuda::CUmemGenericAllocationHandle MemoryHandles::add(std::shared_ptr<Physical> physical) {
  MutexLock lock(mutex_);
  held_[++next_] = std::move(physical);
  return next_;
}

std::shared_ptr<Physical> MemoryHandles::find(cuda::CUmemGenericAllocationHandle handle) const {
  MutexLock lock(mutex_);
  const auto found = held_.find(handle);
  return found == held_.end() ? nullptr : found->second;
}

bool MemoryHandles::remove(cuda::CUmemGenericAllocationHandle handle) {
  MutexLock lock(mutex_);
  return held_.erase(handle) == 1;
}

Objects& objects() {
  static auto* const made = [] {
    auto* const objects = new Objects;
    for (int i = 0; i < kMostDevices; ++i) objects->contexts[i].device = i;
    return objects;
  }();
  return *made;
}

}  // namespace millrace::sim
