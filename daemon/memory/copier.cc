#include "daemon/memory/copier.h"

#include <pthread.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstring>
#include <functional>
#include <utility>

namespace millrace {
namespace {

// So many bytes from `begun` on.
void carry_out(const Copy& copy, std::size_t begun, std::size_t bytes) {
  if (copy.from.empty()) {
    std::memset(copy.to.data() + begun, 0, bytes);
  } else {
    std::memmove(copy.to.data() + begun, copy.from.data() + begun, bytes);
  }
}

// Whether what was copied first may be what is to be copied later.
bool must_be_whole(const Copy& copy) {
  const std::less<const std::byte*> before;
  return !copy.from.empty() && before(copy.from.data(), copy.to.data()) &&
         before(copy.to.data(), copy.from.data() + copy.from.size());
}

}  // namespace

void Copier::take_turn(Job& job) {
  for (std::size_t left = kTurn.count; left > 0 && job.next < job.copies.size();) {
    const Copy& copy = job.copies[job.next];
    const std::size_t rest = copy.to.size() - job.begun;
    const std::size_t now = must_be_whole(copy) ? rest : std::min(rest, left);
    carry_out(copy, job.begun, now);
    left -= std::min(left, now);
    job.begun = now == rest ? 0 : job.begun + now;
    job.next += now == rest ? 1 : 0;
  }
}

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

void Copier::run(UserId user, std::vector<Copy> copies, std::function<void()> done) {
  {
    MutexLock lock(mutex_);
    queue(user, {std::move(copies), 0, 0, std::move(done)});
  }
  changed_.notify_one();
}

void Copier::queue(UserId user, Job job) {
  auto of_user = std::ranges::find(users_, user, &OfUser::user);
  if (of_user == users_.end()) of_user = users_.insert(users_.end(), OfUser{.user = user, .jobs = {}});
  of_user->jobs.push_back(std::move(job));
}

void Copier::run_thread() {
  while (true) {
    UserId user{};
    Job job;
    {
      MutexLock lock(mutex_);
      while (users_.empty() && !closed_) changed_.wait(mutex_);
      if (users_.empty()) return;
      OfUser next = std::move(users_.front());
      users_.pop_front();
      user = next.user;
      job = std::move(next.jobs.front());
      next.jobs.pop_front();
      if (!next.jobs.empty()) users_.push_back(std::move(next));
    }
    take_turn(job);
    if (job.next == job.copies.size()) {
      boost::asio::post(control_, std::move(job.done));
      continue;
    }
    MutexLock lock(mutex_);
    queue(user, std::move(job));
  }
}

}  // namespace millrace
