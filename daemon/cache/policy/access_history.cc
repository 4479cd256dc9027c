#include "daemon/cache/policy/access_history.h"

#include <bit>

namespace millrace {
namespace {

std::uint32_t mark_of(const CacheKey& key) {
  const auto mark = static_cast<std::uint32_t>(key.low);
  return mark == 0 ? 1 : mark;  // 0: an empty cell
}

}  // namespace

AccessHistory::AccessHistory(std::size_t keys) {
  const std::size_t buckets = std::bit_ceil(keys / kWays + 1);
  mask_ = buckets - 1;
  cells_.reset(new std::atomic<std::uint32_t>[buckets * kWays]());
}

bool AccessHistory::seen(const CacheKey& key) {
  std::atomic<std::uint32_t>* const bucket = bucket_of(key);
  const std::uint32_t mark = mark_of(key);
  std::size_t place = (key.low >> 32U) % kWays;  // whose turn it is in a full bucket
  bool is_full = true;
  for (std::size_t i = 0; i < kWays && is_full; ++i) {
    const std::uint32_t there = bucket[i].load(std::memory_order_relaxed);
    if (there == mark) return true;
    if (there != 0) continue;
    place = i;
    is_full = false;
  }
  if (is_full) written_over_.fetch_add(1, std::memory_order_relaxed);
  bucket[place].store(mark, std::memory_order_relaxed);
  return false;
}

void AccessHistory::clear() {
  for (std::size_t i = 0; i < (mask_ + 1) * kWays; ++i) cells_[i].store(0, std::memory_order_relaxed);
  written_over_.store(0, std::memory_order_relaxed);
}

bool AccessHistory::has(const CacheKey& key) const {
  const std::atomic<std::uint32_t>* const bucket = bucket_of(key);
  const std::uint32_t mark = mark_of(key);
  for (std::size_t i = 0; i < kWays; ++i) {
    if (bucket[i].load(std::memory_order_relaxed) == mark) return true;
  }
  return false;
}

}  // namespace millrace
