#include "daemon/backend/job_queue.h"

#include <utility>

namespace millrace {

bool JobQueue::try_push(DecodeJob&& job) {
  {
    MutexLock lock(mutex_);
    if (closed_ || in_it_ >= (job.urgent ? most_ : depth_)) return false;
    ++in_it_;
    auto place = jobs_.end();
    if (job.urgent) {
      place = jobs_.begin() + urgent_.load(std::memory_order_relaxed);
      urgent_.fetch_add(1, std::memory_order_relaxed);
    }
    jobs_.insert(place, QueuedDecode{std::move(job), std::chrono::steady_clock::now()});
  }
  ready_.notify_one();
  return true;
}

std::optional<QueuedDecode> JobQueue::pop() {
  MutexLock lock(mutex_);
  while (jobs_.empty() && !closed_) ready_.wait(mutex_);
  if (jobs_.empty()) return std::nullopt;
  std::optional<QueuedDecode> job(std::move(jobs_.front()));
  jobs_.pop_front();
  if (job->job.urgent) urgent_.fetch_sub(1, std::memory_order_relaxed);
  return job;
}

void JobQueue::finished() {
  MutexLock lock(mutex_);
  --in_it_;
}

bool JobQueue::empty() const {
  MutexLock lock(mutex_);
  return jobs_.empty();
}

void JobQueue::close() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  ready_.notify_all();
}

bool JobQueue::closed() const {
  MutexLock lock(mutex_);
  return closed_;
}

}  // namespace millrace
