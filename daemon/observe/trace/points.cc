#include "daemon/observe/trace/points.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>

#include "proto/base/mutex.h"

namespace millrace::trace {
namespace {

std::string name_of_this_thread() {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return name.data();
}

// One thread's. Writer: that thread. Reader: the recorder.
struct Buffer {
  const std::int64_t tid = ::gettid();
  const std::string name = name_of_this_thread();
  Mutex mutex;
  std::vector<Event> events MILLRACE_GUARDED_BY(mutex);
  std::uint64_t lost MILLRACE_GUARDED_BY(mutex) = 0;
  bool has_ended MILLRACE_GUARDED_BY(mutex) = false;  // its thread has
};
using BufferPtr = std::shared_ptr<Buffer>;  // shared by its thread and the list of all

struct Buffers {
  Mutex mutex;
  std::vector<BufferPtr> all MILLRACE_GUARDED_BY(mutex);
  std::vector<SessionNames> names MILLRACE_GUARDED_BY(mutex);
  std::atomic<std::uint64_t> lost{0};  // of threads that got no buffer
};

// Threads may end after main() has.
Buffers& buffers() {
  static Buffers* const kAll = new Buffers;
  return *kAll;
}

// nullptr: as many threads as may have one already.
BufferPtr new_buffer() {
  Buffers& all = buffers();
  MutexLock lock(all.mutex);
  if (all.all.size() >= kMostThreads) return nullptr;
  return all.all.emplace_back(std::make_shared<Buffer>());
}

class OfThisThread {
 public:
  OfThisThread() = default;
  ~OfThisThread() {
    if (!buffer_) return;
    MutexLock lock(buffer_->mutex);
    buffer_->has_ended = true;
  }
  OfThisThread(const OfThisThread&) = delete;
  OfThisThread& operator=(const OfThisThread&) = delete;

  Buffer* get() {
    if (!buffer_) buffer_ = new_buffer();
    return buffer_.get();
  }

 private:
  BufferPtr buffer_;
};

void forget_ended(Buffers& all) MILLRACE_REQUIRES(all.mutex) {
  std::erase_if(all.all, [](const BufferPtr& buffer) {
    MutexLock lock(buffer->mutex);
    return buffer->has_ended && buffer->events.empty();
  });
}

}  // namespace

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void record(const Event& event) {
  thread_local OfThisThread mine;
  Buffer* const buffer = mine.get();
  if (buffer == nullptr) {
    if (on()) buffers().lost.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  MutexLock lock(buffer->mutex);
  if (!on()) return;
  if (buffer->events.size() >= kThreadEvents) {
    ++buffer->lost;
    return;
  }
  if (buffer->events.capacity() < kThreadEvents) buffer->events.reserve(kThreadEvents);
  buffer->events.push_back(event);
}

void name_session(SessionNames names) {
  Buffers& all = buffers();
  MutexLock lock(all.mutex);
  if (on() && all.names.size() < kMostNames) all.names.push_back(std::move(names));
}

void begin_recording() {
  is_recording.store(true, std::memory_order_relaxed);
}

void end_recording() {
  is_recording.store(false, std::memory_order_relaxed);
  Buffers& all = buffers();
  MutexLock lock(all.mutex);
  for (const BufferPtr& buffer : all.all) {
    MutexLock its(buffer->mutex);
    std::vector<Event>().swap(buffer->events);
    buffer->lost = 0;
  }
  std::vector<SessionNames>().swap(all.names);
  all.lost.store(0, std::memory_order_relaxed);
  forget_ended(all);
}

bool take_events_of(std::size_t i, ThreadEvents& taken) {
  Buffers& all = buffers();
  MutexLock lock(all.mutex);
  if (i == 0) forget_ended(all);
  if (i == all.all.size()) {
    taken = {};
    taken.lost = all.lost.exchange(0, std::memory_order_relaxed);
    return taken.lost > 0;
  }
  if (i > all.all.size()) return false;
  Buffer& buffer = *all.all[i];
  taken.events.clear();
  taken.events.reserve(kThreadEvents);
  taken.tid = buffer.tid;
  taken.name = buffer.name;
  MutexLock its(buffer.mutex);
  taken.events.swap(buffer.events);
  taken.lost = std::exchange(buffer.lost, 0);
  return true;
}

std::vector<SessionNames> take_names() {
  Buffers& all = buffers();
  MutexLock lock(all.mutex);
  return std::exchange(all.names, {});
}

std::size_t memory_of_buffers() {
  std::error_code error;
  std::size_t threads = 0;
  for (std::filesystem::directory_iterator task("/proc/self/task", error), none; !error && task != none;
       task.increment(error))
    ++threads;
  if (error) threads = kMostThreads;
  return 2 * std::min(threads, kMostThreads) * kThreadEvents * sizeof(Event);  // its buffer, and what was taken of it
}

}  // namespace millrace::trace
