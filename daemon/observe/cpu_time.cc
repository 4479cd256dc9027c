#include "daemon/observe/cpu_time.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string_view>

#include "proto/base/mutex.h"

namespace millrace {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{100};

std::chrono::nanoseconds duration_of(const timespec& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::chrono::nanoseconds duration_of(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

std::chrono::nanoseconds usage_of(int whose) {
  rusage usage{};
  getrusage(whose, &usage);
  return duration_of(usage.ru_utime) + duration_of(usage.ru_stime);
}

// Children are the process's, so they are one list for all of it.
struct Children {
  Mutex mutex;
  std::set<pid_t> pids MILLRACE_GUARDED_BY(mutex);
  std::chrono::nanoseconds told MILLRACE_GUARDED_BY(mutex){0};
};

Children& children() {
  static Children all;
  return all;
}

}  // namespace

std::chrono::nanoseconds thread_cpu_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return duration_of(time);
}

std::optional<std::chrono::nanoseconds> process_cpu_time(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return std::nullopt;
  return duration_of(time);
}

// A child that is reaped meanwhile is in neither sum, and never in both. Then the figure stays as it was last told.
std::chrono::nanoseconds cpu_time_with_children() {
  Children& known = children();
  MutexLock lock(known.mutex);
  std::chrono::nanoseconds all = usage_of(RUSAGE_CHILDREN);
  for (const pid_t pid : known.pids) all += process_cpu_time(pid).value_or(std::chrono::nanoseconds{0});
  all += usage_of(RUSAGE_SELF);
  return known.told = std::max(known.told, all);
}

void child_started(pid_t pid) {
  Children& known = children();
  MutexLock lock(known.mutex);
  known.pids.insert(pid);
}

void child_ended(pid_t pid) {
  Children& known = children();
  MutexLock lock(known.mutex);
  known.pids.erase(pid);
}

RunnableTime::RunnableTime() : schedstat_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {
  until_ = read().value_or(std::chrono::nanoseconds{0});
}

std::chrono::nanoseconds RunnableTime::lap() {
  const auto now = std::chrono::steady_clock::now();
  if (!schedstat_ || now - looked_ < kBetweenLooks) return std::chrono::nanoseconds{0};
  looked_ = now;
  const std::optional<std::chrono::nanoseconds> so_far = read();
  if (!so_far) return std::chrono::nanoseconds{0};
  const std::chrono::nanoseconds since = *so_far - until_;
  until_ = *so_far;
  return since;
}

// "nanoseconds on a processor, nanoseconds that it waited for one, times that it had one".
std::optional<std::chrono::nanoseconds> RunnableTime::read() const {
  std::array<char, 96> text{};
  const ssize_t bytes = schedstat_ ? pread(schedstat_.get(), text.data(), text.size(), 0) : -1;
  if (bytes <= 0) return std::nullopt;
  const std::string_view numbers(text.data(), static_cast<std::size_t>(bytes));
  const std::size_t second = numbers.find(' ');
  if (second == std::string_view::npos) return std::nullopt;
  std::int64_t waited = 0;
  const auto read = std::from_chars(numbers.data() + second + 1, numbers.data() + numbers.size(), waited);
  if (read.ec != std::errc()) return std::nullopt;
  return std::chrono::nanoseconds(waited);
}

}  // namespace millrace
