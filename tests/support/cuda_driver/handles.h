// Handles, and what they stand for. They are no addresses, and never come twice in a process: one that was destroyed is
// found out for ever. NVIDIA's driver does anything with those, and so a program that uses one ends, unless
// SIM_CUDA_STRICT_HANDLES=0. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "proto/base/mutex.h"
#include "tests/support/cuda_driver/settings.h"

namespace millrace::sim {

template <class T>
class Handles {
 public:
  // `what`: "a stream". `first`: below all handles; those of other tables are far from it.
  Handles(const char* what, std::uintptr_t first) : what_(what), first_(first), last_(first) {}

  T* add(std::shared_ptr<T> object) {
    MutexLock lock(mutex_);
    T* const handle = reinterpret_cast<T*>(last_ += 8);
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  // Null: there never was one.
  std::shared_ptr<T> find(T* handle) const {
    {
      MutexLock lock(mutex_);
      if (const auto found = objects_.find(handle); found != objects_.end()) return found->second;
      if (!was_destroyed(handle)) return nullptr;
    }
    return no_more();
  }
  // As find().
  std::shared_ptr<T> remove(T* handle) {
    {
      MutexLock lock(mutex_);
      if (auto found = objects_.extract(handle)) return std::move(found.mapped());
      if (!was_destroyed(handle)) return nullptr;
    }
    return no_more();
  }
  template <class Predicate>
  void remove_if(Predicate predicate) {
    MutexLock lock(mutex_);
    std::erase_if(objects_, [&](const auto& entry) { return predicate(*entry.second); });
  }
  std::vector<std::shared_ptr<T>> all() const {
    MutexLock lock(mutex_);
    std::vector<std::shared_ptr<T>> all;
    for (const auto& [handle, object] : objects_) all.push_back(object);
    return all;
  }
  // All that there are, at the process's end: it is nobody's fault that none are left.
  std::vector<std::shared_ptr<T>> take_all() {
    MutexLock lock(mutex_);
    std::vector<std::shared_ptr<T>> all;
    for (auto& [handle, object] : objects_) all.push_back(std::move(object));
    objects_.clear();
    taken_ = true;
    return all;
  }

 private:
  // REQUIRES: there is none of that handle.
  bool was_destroyed(T* handle) const MILLRACE_REQUIRES(mutex_) {
    const auto number = reinterpret_cast<std::uintptr_t>(handle);
    return number > first_ && number <= last_ && !taken_;
  }
  std::shared_ptr<T> no_more() const {
    if (strict_handles()) end_process(what_, "used after it was destroyed");
    return nullptr;
  }

  const char* const what_;
  const std::uintptr_t first_;
  mutable Mutex mutex_;
  std::uintptr_t last_ MILLRACE_GUARDED_BY(mutex_);
  bool taken_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::map<T*, std::shared_ptr<T>> objects_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::sim
