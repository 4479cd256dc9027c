// Which keys came up before: a picture is kept of what is accessed again, not of what is seen once. A table of fixed size
// that forgets by being written over, so it may say "no" of a key that did come up, and "yes" of one in four thousand
// million that did not. Thread-safe: relaxed atomics, each cell stands for itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "daemon/cache/cache_key.h"

namespace millrace {

class AccessHistory {
 public:
  // Room for about so many keys, rounded up to a power of two.
  explicit AccessHistory(std::size_t keys);

  bool has(const CacheKey& key) const;
  // Whether it came up before; notes that it did.
  bool seen(const CacheKey& key);
  // Whether keys have been written over, beyond a sixteenth of the room: of a dataset this large many come up as new.
  bool forgets() const { return written_over_.load(std::memory_order_relaxed) > (mask_ + 1) * kWays / 16; }
  void clear();

 private:
  static constexpr std::size_t kWays = 16;  // a cache line of keys
  std::atomic<std::uint32_t>* bucket_of(const CacheKey& key) const { return &cells_[(key.high & mask_) * kWays]; }

  std::size_t mask_ = 0;  // of buckets
  std::atomic<std::size_t> written_over_{0};
  std::unique_ptr<std::atomic<std::uint32_t>[]> cells_;
};

}  // namespace millrace
