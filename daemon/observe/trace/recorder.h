// Recordings of what the daemon does, for those who ask. One thread, mr-trace, is there while one runs: it takes what
// threads have recorded (points.h) every few milliseconds, reads gauges, and makes a file's next part for each recording.
//
//   control: begin() ─▶ Recording ◀── mr-trace: next part, `told` ── ... ── its time is over, or end() ─▶ has_ended()
//              └── take() on control: parts, to the client
//
// What a client does not take in time is lost and counted, and nobody waits for it. Recorder: Thread-bound(control).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "daemon/observe/counters.h"
#include "daemon/observe/trace/trace_file.h"
#include "proto/base/mutex.h"
#include "proto/base/result.h"

namespace millrace::trace {

inline constexpr std::size_t kMostRecordings = 4, kMostOfAUser = 2;
inline constexpr std::chrono::seconds kLongestRecording{600};

// Thread-safe.
class Recording {
 public:
  static constexpr std::size_t kPartBytes = 256U << 10U, kMostUntaken = 4U << 20U;  // of a client that reads slowly
  static constexpr std::size_t kMemory = kMostUntaken + 2 * kPartBytes;

  // `told`: called on mr-trace when there is a part, or it has ended.
  Recording(const Scope& scope, UserId by, FormatName format, std::chrono::nanoseconds length,
            std::function<void()> told);

  // The next part of its file; nullopt: there is none for now.
  std::optional<std::string> take() MILLRACE_EXCLUDES(mutex_);
  // Whether there will be no part any more but those that take() still has.
  bool has_ended() const MILLRACE_EXCLUDES(mutex_);
  // It ends soon.
  void end() { is_over_.store(true, std::memory_order_relaxed); }
  // Once each time that something was lost: states are to be recorded again.
  bool take_was_lost() { return was_lost_.exchange(false, std::memory_order_relaxed); }
  UserId by() const { return by_; }

 private:
  friend class Recorder;

  // On mr-trace:
  void name(const SessionNames& names) { file_.name(names); }
  void add(const ThreadEvents& events);
  void set(const Gauge& gauge, std::int64_t at) { file_.set(gauge, at); }
  bool is_over(std::int64_t at) const;
  void write(bool is_last, std::int64_t at) MILLRACE_EXCLUDES(mutex_);
  bool has_room() MILLRACE_EXCLUDES(mutex_);
  void push() MILLRACE_EXCLUDES(mutex_);

  const UserId by_;
  const std::int64_t until_;
  const std::function<void()> told_;
  TraceFile file_;          // mr-trace's
  std::uint64_t lost_ = 0;  // the same: not yet in the file
  // Writers: anybody, and mr-trace. Readers: mr-trace, and the control thread. Each stands for itself.
  std::atomic<bool> is_over_{false}, was_lost_{false};
  mutable Mutex mutex_;
  std::deque<std::string> parts_ MILLRACE_GUARDED_BY(mutex_);
  std::size_t untaken_ MILLRACE_GUARDED_BY(mutex_) = 0;  // bytes
  bool has_ended_ MILLRACE_GUARDED_BY(mutex_) = false;
};
using RecordingPtr = std::shared_ptr<Recording>;  // shared by who takes its parts and by mr-trace

class Recorder {
 public:
  // `counters` outlives it.
  Recorder(const Counters& counters, FormatName format) : counters_(counters), format_(format) {}
  ~Recorder();  // ends what is recorded
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // From now on points record, before this returns. `by`: who asks. kExhausted: as many run as may, in all or of him.
  // kUnavailable: there is no thread for it.
  Result<RecordingPtr> begin(const Scope& scope, UserId by, std::chrono::nanoseconds length, std::function<void()> told)
      MILLRACE_EXCLUDES(mutex_);

 private:
  void run() MILLRACE_EXCLUDES(mutex_);
  void look(const std::vector<RecordingPtr>& recordings);
  std::vector<RecordingPtr> running() MILLRACE_EXCLUDES(mutex_);
  std::vector<Gauge> gauges() const;

  const Counters& counters_;
  const FormatName format_;
  std::thread thread_;
  std::atomic<bool> stops_{false};  // Writer: the destructor. Reader: mr-trace
  Mutex mutex_;
  std::list<RecordingPtr> recordings_ MILLRACE_GUARDED_BY(mutex_);
  bool is_running_ MILLRACE_GUARDED_BY(mutex_) = false;  // mr-trace goes on
};

}  // namespace millrace::trace
