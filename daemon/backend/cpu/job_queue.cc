#include "daemon/backend/cpu/job_queue.h"

#include <utility>

namespace millrace {

bool JobQueue::try_push(DecodeJob&& job) {
  {
    MutexLock lock(mutex_);
    if (closed_ || in_it_ == depth_) return false;
    ++in_it_;
    ++repair_room_;
    decodes_.push_back(QueuedDecode{std::move(job), std::chrono::steady_clock::now()});
  }
  ready_.notify_one();
  return true;
}

bool JobQueue::try_push(RepairJob&& job) {
  {
    MutexLock lock(mutex_);
    if (closed_ || repair_room_ == 0) return false;
    --repair_room_;
    repairs_.push_back(std::move(job));
  }
  ready_.notify_one();
  return true;
}

std::optional<QueuedJob> JobQueue::pop() {
  MutexLock lock(mutex_);
  while (decodes_.empty() && repairs_.empty() && !closed_) ready_.wait(mutex_);
  if (!repairs_.empty()) {
    std::optional<QueuedJob> job(std::move(repairs_.front()));
    repairs_.pop_front();
    return job;
  }
  if (decodes_.empty()) return std::nullopt;
  std::optional<QueuedJob> job(std::move(decodes_.front()));
  decodes_.pop_front();
  return job;
}

void JobQueue::finished() {
  MutexLock lock(mutex_);
  --in_it_;
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
