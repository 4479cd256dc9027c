#include "daemon/model/bytes/encoded_pool.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

EncodedPool::EncodedPool(Bytes limit, BlockSource& source) : source_(source), limit_(limit.count) {
  kept_.reserve(2 * kMostKept);  // so that give() asks for no memory, however many threads are in it
}

EncodedPool::Block EncodedPool::take(std::size_t size) {
  Block block = take_kept(size);
  if (!block.data) {
    block.capacity = (size + kPage - 1) / kPage * kPage;
    block.data = take_block(source_, block.capacity);
  }
  MutexLock lock(mutex_);
  in_use_ += block.capacity;
  return block;
}

EncodedPool::Block EncodedPool::take_kept(std::size_t size) {
  MutexLock lock(mutex_);
  const auto fits = [&](const Block& block) {
    return block.capacity >= size && block.capacity - size <= std::max(size / 2, kPage);
  };
  const auto found = std::find_if(kept_.rbegin(), kept_.rend(), fits);
  if (found == kept_.rend()) return {};
  Block block = std::move(*found);
  kept_.erase(std::next(found).base());
  kept_bytes_ -= block.capacity;
  return block;
}

void EncodedPool::give(Block block) noexcept {
  if (!block.data) return;
  {
    MutexLock lock(mutex_);
    in_use_ -= block.capacity;
    kept_bytes_ += block.capacity;
    kept_.push_back(std::move(block));
  }
  while (take_surplus().data) {
  }
}

// What is over the bounds, one at a time, so that it is freed without the lock.
EncodedPool::Block EncodedPool::take_surplus() {
  MutexLock lock(mutex_);
  const bool over = kept_.size() > kMostKept || in_use_ + kept_bytes_ > limit_;
  if (!over || kept_.empty()) return {};
  Block block = std::move(kept_.front());
  kept_.erase(kept_.begin());
  kept_bytes_ -= block.capacity;
  return block;
}

void EncodedPool::limit_to(Bytes limit) {
  MutexLock lock(mutex_);
  limit_ = limit.count;
}

Bytes EncodedPool::in_use() const {
  MutexLock lock(mutex_);
  return Bytes{in_use_};
}

Bytes EncodedPool::kept() const {
  MutexLock lock(mutex_);
  return Bytes{kept_bytes_};
}

}  // namespace millrace
