// What lanes are making for the cache right now, so that no two of them make the same. Thread-safe.
#pragma once

#include <optional>
#include <unordered_set>
#include <utility>

#include "daemon/cache/cache_key.h"
#include "proto/base/mutex.h"

namespace millrace {

class BeingMade {
 public:
  // The right to make one thing, until it goes. Thread-bound(its owner).
  class Turn {
   public:
    Turn(BeingMade& all, const CacheKey& key) : all_(&all), key_(key) {}
    Turn(Turn&& other) noexcept : all_(std::exchange(other.all_, nullptr)), key_(other.key_) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (all_ != nullptr) all_->end(key_);
    }

   private:
    BeingMade* all_;
    CacheKey key_;
  };

  // nullopt: somebody is at it.
  std::optional<Turn> begin(const CacheKey& key) MILLRACE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (!keys_.insert(key).second) return std::nullopt;
    return std::optional<Turn>(std::in_place, *this, key);
  }

 private:
  struct Hash {
    std::size_t operator()(const CacheKey& key) const { return key.low; }
  };
  void end(const CacheKey& key) MILLRACE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    keys_.erase(key);
  }

  Mutex mutex_;
  std::unordered_set<CacheKey, Hash> keys_ MILLRACE_GUARDED_BY(mutex_);  // no more than there are lanes
};

}  // namespace millrace
