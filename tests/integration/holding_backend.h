// A backend that keeps every job until the test lets it go, and makes nothing; what it was given can be looked at. It says
// that a sample took a microsecond for each pixel of its file, whatever it was expected to take.
// Thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/backend/backend.h"
#include "proto/base/mutex.h"

namespace millrace {

class HoldingBackend final : public Backend {
 public:
  static constexpr std::uint32_t kLarge = 1000;  // pixels a side: what is larger is a large picture

  // A sample that it was given, in the order in which it was.
  struct Given {
    std::uint32_t index = 0;
    Fidelity fidelity{};
    std::shared_ptr<const Recipe> recipe;
  };
  static std::chrono::microseconds took(const SampleTask& task) {
    return std::chrono::microseconds(std::int64_t{task.image.info.stored.width} * task.image.info.stored.height);
  }

  explicit HoldingBackend(std::uint32_t depth, std::uint32_t lanes = 4, std::uint32_t urgent = 0)
      : depth_(depth), urgent_(urgent), lanes_(lanes) {}

  BackendInfo info() const override {
    return {.name = "test", .lanes = lanes_, .formats = {ImageFormat::kJpeg, ImageFormat::kPng, ImageFormat::kWebp}};
  }
  QueueDepth queue_depth() const override {
    return {.jobs = depth_, .at_once = lanes_, .few = 4, .most = 16, .urgent = urgent_};
  }
  Result<void> can_make(const SampleFacts&, const Recipe&) const override { return {}; }
  void listen(HealthListener listener) override { health_.listen(std::move(listener)); }
  // Jobs stay where they are; it takes no more.
  void lose(std::string why) MILLRACE_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      lost_ = true;
    }
    health_.lost(std::move(why));
  }
  bool try_submit(DecodeJob&& job) override MILLRACE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (lost_ || jobs_.size() >= depth_ + (job.urgent ? urgent_ : 0)) return false;
    for (const SampleTask& task : job.tasks) given_.push_back({task.index, job.fidelity, job.recipe});
    jobs_.push_back(std::move(job));
    return true;
  }
  void shutdown() override {
    while (finish_all() > 0) {
    }
  }

  std::size_t jobs() MILLRACE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return jobs_.size();
  }
  std::size_t large() MILLRACE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return static_cast<std::size_t>(std::count_if(jobs_.begin(), jobs_.end(), is_large));
  }
  std::vector<Given> given() MILLRACE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return given_;
  }

  // How many jobs were let go.
  std::size_t finish_small() {
    return finish([](const DecodeJob& job) { return !is_large(job); });
  }
  std::size_t finish_large() { return finish(is_large); }
  std::size_t finish_all() {
    return finish([](const DecodeJob&) { return true; });
  }

 private:
  static bool is_large(const DecodeJob& job) {
    return std::any_of(job.tasks.begin(), job.tasks.end(),
                       [](const SampleTask& task) { return task.image.info.stored.width > kLarge; });
  }
  template <class Wanted>
  std::size_t finish(Wanted wanted) MILLRACE_EXCLUDES(mutex_) {
    std::vector<DecodeJob> finished;
    {
      MutexLock lock(mutex_);
      const auto first = std::stable_partition(jobs_.begin(), jobs_.end(), std::not_fn(wanted));
      std::move(first, jobs_.end(), std::back_inserter(finished));
      jobs_.erase(first, jobs_.end());
    }
    for (DecodeJob& job : finished) {
      std::vector<SampleOutcome> outcomes;
      for (const SampleTask& task : job.tasks) outcomes.push_back({.index = task.index, .decode = took(task)});
      job.done(std::move(job.tasks), std::move(outcomes));
    }
    return finished.size();
  }

  const std::uint32_t depth_, urgent_;
  HealthNews health_;
  const std::uint32_t lanes_;
  Mutex mutex_;
  bool lost_ MILLRACE_GUARDED_BY(mutex_) = false;
  std::vector<DecodeJob> jobs_ MILLRACE_GUARDED_BY(mutex_);
  std::vector<Given> given_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
