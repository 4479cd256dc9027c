#include "daemon/memory/copier.h"

#include <pthread.h>

#include <boost/asio/post.hpp>
#include <cstring>
#include <utility>

namespace millrace {
namespace {

void carry_out(const Copy& copy) {
  if (copy.from.empty()) {
    std::memset(copy.to.data(), 0, copy.to.size());
  } else {
    std::memmove(copy.to.data(), copy.from.data(), copy.to.size());
  }
}

// The copies from `next` on, a turn's worth; returns where to go on.
std::size_t take_turn(const std::vector<Copy>& copies, std::size_t next) {
  for (Bytes copied; next < copies.size() && copied < Copier::kTurn; ++next) {
    carry_out(copies[next]);
    copied += Bytes{copies[next].to.size()};
  }
  return next;
}

}  // namespace

Copier::Copier(boost::asio::io_context& control) : control_(control), thread_([this] { run_thread(); }) {
  pthread_setname_np(thread_.native_handle(), "mr-copier");
}

Copier::~Copier() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Copier::run(std::vector<Copy> copies, std::function<void()> done) {
  {
    MutexLock lock(mutex_);
    jobs_.push_back({std::move(copies), 0, std::move(done)});
  }
  changed_.notify_one();
}

void Copier::run_thread() {
  while (true) {
    Job job;
    {
      MutexLock lock(mutex_);
      while (jobs_.empty() && !closed_) changed_.wait(mutex_);
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job.next = take_turn(job.copies, job.next);
    if (job.next == job.copies.size()) {
      boost::asio::post(control_, std::move(job.done));
      continue;
    }
    MutexLock lock(mutex_);
    jobs_.push_back(std::move(job));
  }
}

}  // namespace millrace
