// What lanes are making right now that the cache may keep, so that one of them keeps it and others may wait with it.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <unordered_map>
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

    // Whether somebody found it being made, and comes for it soon.
    bool is_wanted() const { return all_->is_wanted(key_); }

   private:
    BeingMade* all_;
    CacheKey key_;
  };

  // nullopt: somebody is at it, and learns that it is wanted.
  std::optional<Turn> begin(const CacheKey& key) MILLRACE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto [place, is_new] = wanted_.emplace(key, false);
    place->second = !is_new;
    if (!is_new) return std::nullopt;
    count_.store(wanted_.size(), std::memory_order_relaxed);
    return std::optional<Turn>(std::in_place, *this, key);
  }

  // Whether somebody is at it; who is learns that it is wanted.
  bool want(const CacheKey& key) MILLRACE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto found = wanted_.find(key);
    if (found == wanted_.end()) return false;
    found->second = true;
    return true;
  }

  // Without waiting for anybody. What begins or ends at this moment may be missed.
  bool is_empty() const { return count_.load(std::memory_order_relaxed) == 0; }

 private:
  struct Hash {
    std::size_t operator()(const CacheKey& key) const { return key.low; }
  };
  bool is_wanted(const CacheKey& key) const MILLRACE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return wanted_.at(key);
  }
  void end(const CacheKey& key) MILLRACE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    wanted_.erase(key);
    count_.store(wanted_.size(), std::memory_order_relaxed);
  }

  std::atomic<std::size_t> count_{0};  // of wanted_; publishes nothing
  mutable Mutex mutex_;
  std::unordered_map<CacheKey, bool, Hash> wanted_ MILLRACE_GUARDED_BY(mutex_);  // no more than two a lane
};

}  // namespace millrace
