// Points in the daemon's code at which a recording learns what happens. While nobody records, a point is one relaxed load.
//
//   a thread ── record() ──▶ its own buffer, of kThreadEvents ──▶ mr-trace: Recorder, every few milliseconds
//                                   └── full: counted
//
// A thread gets its buffer with its first event, and keeps no memory for it once nobody records. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/base/ids.h"

namespace millrace::trace {

enum class What : std::uint8_t {
  // Of a thread.
  kJobBegins,      // a lane's; `number`: images
  kPortionBegins,  // a fetch thread's, likewise
  kWorkEnds,       // either of them
  kImage,  // made from `at` to `until`; `index`: in its batch; `kind`: its format; `text`: the backend; `failed`
  kRead,   // read; `index`: likewise; `number`: bytes; `failed`
  // Of a session, by the control thread.
  kSessionState,  // it enters the state `kind`
  kSessionEnds,
  kSlots,       // of a session: `index` are free, `number` hold batches under way, `more` are the program's
  kBatchStage,  // the batch of key `number` is in the stage `text`; `more`: its id; `index`: images
  kBatchEnds,   // likewise; `failed`
  // Of no session, likewise.
  kPortions,  // so many, `number`, are at the fetch threads
  kJobs,      // the same of jobs at the backend `text`
};

// Of whom it is.
struct Subject {
  UserId user{};
  SessionId session{};
};

struct Event {
  What what{};
  std::uint8_t kind = 0;
  bool failed = false;
  std::uint32_t index = 0;
  Subject of{};
  std::int64_t at = 0, until = 0;  // nanoseconds of the steady clock
  std::uint64_t number = 0, more = 0;
  std::string_view text{};  // lasts as long as the recorder
};

// What a session is called; names are for people to read.
struct SessionNames {
  Subject of;
  std::string name, job;
};

// Writer: Recorder. Readers: every thread. Publishes nothing but itself.
inline std::atomic<bool> is_recording{false};

inline bool on() {
  return is_recording.load(std::memory_order_relaxed);
}

std::int64_t now();

// REQUIRES: on() a moment ago. Nothing is recorded if that is over.
void record(const Event& event);
// The same, of a session that there is, or that opens.
void name_session(SessionNames names);

// A job or a portion, from its construction on, for as long as it lives. Thread-bound(its owner).
class Work {
 public:
  Work(What begins, Subject of, std::size_t images) : is_on_(on()), of_(of) {
    if (is_on_) record({.what = begins, .of = of, .at = now(), .number = images});
  }
  ~Work() {
    if (is_on_) record({.what = What::kWorkEnds, .of = of_, .at = now()});
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // What is done within it is recorded.
  bool is_recorded() const { return is_on_; }
  // `event`: without its subject.
  void add(Event event) const {
    event.of = of_;
    record(event);
  }

 private:
  const bool is_on_;
  const Subject of_;
};

// What one thread has recorded since the last look.
struct ThreadEvents {
  std::int64_t tid = 0;
  std::string name;
  std::uint64_t lost = 0;  // that found its buffer full
  std::vector<Event> events;
};

// For the recorder alone, one thread at a time.
inline constexpr std::size_t kThreadEvents = 2'048, kMostThreads = 256, kMostNames = 4'096;
void begin_recording();
void end_recording();  // what was not taken is gone
// Calls `look` for each thread that has recorded something or lost it.
template <class Look>
void take_events(Look look);
std::vector<SessionNames> take_names();
std::size_t memory_of_buffers();  // bytes that they take while all threads of the process record

// What take_events() goes through: the events of thread number `i`, in the vector of `taken`, whose memory becomes the
// thread's. false: there are no more threads.
bool take_events_of(std::size_t i, ThreadEvents& taken);

template <class Look>
void take_events(Look look) {
  ThreadEvents taken;
  for (std::size_t i = 0; take_events_of(i, taken); ++i) {
    if (!taken.events.empty() || taken.lost > 0) look(std::exchange(taken, {}));
  }
}

}  // namespace millrace::trace
