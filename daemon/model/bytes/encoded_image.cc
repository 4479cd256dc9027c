#include "daemon/model/bytes/encoded_image.h"

#include <cstring>
#include <utility>

namespace millrace {
namespace {

EncodedPool::Block memory_of(std::size_t bytes, EncodedPool* pool) {
  if (pool != nullptr) return pool->take(bytes);
  return {take_block(heap_blocks(), bytes), bytes};
}

}  // namespace

EncodedBytes::EncodedBytes(std::size_t size, EncodedPool* pool)
    : block_(memory_of(size + kRoomBehind, pool)), pool_(pool), size_(size) {
  std::memset(block_.data.get() + size, 0, kReadSlack);
}

EncodedBytes::EncodedBytes(EncodedBytes&& other) noexcept
    : block_(std::move(other.block_)), pool_(other.pool_), size_(std::exchange(other.size_, 0)) {}

EncodedBytes& EncodedBytes::operator=(EncodedBytes&& other) noexcept {
  if (this == &other) return *this;
  release();
  block_ = std::move(other.block_);
  pool_ = other.pool_;
  size_ = std::exchange(other.size_, 0);
  return *this;
}

void EncodedBytes::release() noexcept {
  if (pool_ != nullptr) pool_->give(std::move(block_));
}

void EncodedBytes::shrink(std::size_t size) {
  if (!block_.data) return;
  size_ = size;
  std::memset(block_.data.get() + size, 0, kReadSlack);
}

void EncodedBytes::clear_behind() {
  if (block_.data) std::memset(block_.data.get() + size_, 0, kRoomBehind);
}

}  // namespace millrace
