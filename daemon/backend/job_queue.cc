#include "daemon/backend/job_queue.h"

#include <utility>

namespace millrace {

bool JobQueue::try_push(DecodeJob&& job) {
  {
    MutexLock lock(mutex_);
    if (closed_ || in_it_ == depth_) return false;
    ++in_it_;
    jobs_.push_back(QueuedDecode{std::move(job), std::chrono::steady_clock::now()});
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
