#include "tests/support/cuda_driver/order.h"

#include <algorithm>
#include <cstdio>
#include <deque>

#include "proto/base/mutex.h"
#include "tests/support/cuda_driver/settings.h"

namespace millrace::sim {
namespace {

using cuda::CUdeviceptr;

struct Access {
  CUdeviceptr begin, end;
  bool write;
  std::size_t stream;
  std::uint32_t time;
  std::string what;
};

struct StreamClock {
  Knowledge knows;
  std::deque<Knowledge> waiting;  // what operations know that have not ended, in their order
};

struct Clocks {
  Mutex mutex;
  std::vector<StreamClock> streams MILLRACE_GUARDED_BY(mutex);
  Knowledge host MILLRACE_GUARDED_BY(mutex);
  std::vector<Access> accesses MILLRACE_GUARDED_BY(mutex);
};

Clocks& clocks() {
  static auto* const made = new Clocks;
  return *made;
}

thread_local const Stamp* running_stamp = nullptr;

void learn(Knowledge& knows, const Knowledge& more) {
  knows.resize(std::max(knows.size(), more.size()));
  for (std::size_t i = 0; i < more.size(); ++i) knows[i] = std::max(knows[i], more[i]);
}

std::uint32_t time_of(const Knowledge& knows, std::size_t stream) {
  return stream < knows.size() ? knows[stream] : 0;
}

// What every operation knows that is to come: one that is to be given to a stream knows what the host does.
Knowledge known_to_all(const Clocks& clocks) MILLRACE_REQUIRES(clocks.mutex) {
  Knowledge common = clocks.host;
  for (std::size_t of = 0; of < clocks.streams.size(); ++of) {
    const std::deque<Knowledge>& waiting = clocks.streams[of].waiting;
    for (std::size_t i = 0; !waiting.empty() && i < common.size(); ++i)
      if (i != of) common[i] = std::min(common[i], time_of(waiting.front(), i));
  }
  return common;
}

bool is_race(const Access& one, const Access& other) {
  return one.stream != other.stream && (one.write || other.write) && one.begin < other.end && other.begin < one.end;
}

// A stream that does not know of the first knows nothing of the second: that one will do.
bool is_repeated(const Access& first, const Access& second) {
  return first.stream == second.stream && first.begin == second.begin && first.end == second.end &&
         first.write == second.write;
}

void report(const Access& one, const Access& other) {
  const CUdeviceptr begin = std::max(one.begin, other.begin);
  std::fprintf(
      stderr, "simulated CUDA: race: %s (stream %zu) and %s (stream %zu) at 0x%llx, %llu bytes: nothing orders them\n",
      one.what.c_str(), one.stream, other.what.c_str(), other.stream, begin, std::min(one.end, other.end) - begin);
}

}  // namespace

std::size_t add_stream() {
  MutexLock lock(clocks().mutex);
  clocks().streams.emplace_back();
  return clocks().streams.size() - 1;
}

Stamp stamp(std::size_t stream, const std::string& what) {
  MutexLock lock(clocks().mutex);
  StreamClock& clock = clocks().streams[stream];
  clock.knows.resize(std::max(clock.knows.size(), stream + 1));
  learn(clock.knows, clocks().host);
  ++clock.knows[stream];
  clock.waiting.push_back(clock.knows);
  return {stream, what, clock.knows};
}

Knowledge known_to_stream(std::size_t stream) {
  MutexLock lock(clocks().mutex);
  return clocks().streams[stream].knows;
}

void stream_learns(std::size_t stream, const Knowledge& knows) {
  MutexLock lock(clocks().mutex);
  learn(clocks().streams[stream].knows, knows);
}

void host_learns(const Knowledge& knows) {
  MutexLock lock(clocks().mutex);
  learn(clocks().host, knows);
  const Knowledge common = known_to_all(clocks());
  std::erase_if(clocks().accesses, [&](const Access& access) { return access.time <= time_of(common, access.stream); });
}

void begin_operation(const Stamp& stamp) {
  running_stamp = &stamp;
}

void end_operation() {
  MutexLock lock(clocks().mutex);
  clocks().streams[running_stamp->stream].waiting.pop_front();
  running_stamp = nullptr;
}

void operation_tells_host() {
  if (running_stamp != nullptr) host_learns(running_stamp->knows);
}

void forget(CUdeviceptr at, std::size_t size) {
  MutexLock lock(clocks().mutex);
  std::erase_if(clocks().accesses, [&](const Access& access) { return access.begin >= at && access.end <= at + size; });
}

void touch(CUdeviceptr at, std::size_t size, bool write) {
  if (!settings().races || running_stamp == nullptr || size == 0) return;
  const Access access{at,
                      at + size,
                      write,
                      running_stamp->stream,
                      time_of(running_stamp->knows, running_stamp->stream),
                      running_stamp->what};
  MutexLock lock(clocks().mutex);
  bool reported = false;
  Access* same = nullptr;
  for (Access& other : clocks().accesses) {
    if (is_repeated(other, access)) same = &other;
    if (reported || !is_race(other, access) || other.time <= time_of(running_stamp->knows, other.stream)) continue;
    report(other, access);
    reported = true;
  }
  if (same == nullptr)
    clocks().accesses.push_back(access);
  else
    *same = access;
}

}  // namespace millrace::sim
