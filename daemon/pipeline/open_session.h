// What a session brings into the pipeline, and what its batches see of it. Thread-bound(control).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/admit/ledger.h"
#include "daemon/memory/arena.h"
#include "daemon/model/batch_sink.h"
#include "daemon/model/caller.h"
#include "daemon/model/owner.h"
#include "daemon/observe/cost.h"
#include "daemon/observe/counters.h"
#include "daemon/observe/explain/session_signs.h"
#include "daemon/observe/log.h"
#include "daemon/observe/session_states.h"
#include "daemon/slots/slot_pool.h"
#include "proto/base/batch_choices.h"
#include "proto/base/bytes.h"
#include "proto/base/ids.h"

namespace millrace {

// Whether what a session reads comes fast or slowly, as its last portion took: from a file server that is busy, a disk
// that is about to fail, or because the files are giants. Those that read slowly have no more fetch threads together
// than the settings say; one more than that there is, and it is for the others (see Reading). Thread-bound(control).
class ReadingPace {
 public:
  // A portion of a warm disk takes a tenth of it.
  static constexpr std::chrono::milliseconds kSlow{10};

  // Nobody knows of a new session, so it is taken for slow until its first portion is here.
  bool slow() const { return slow_; }
  void note(std::chrono::microseconds portion) { slow_ = portion >= kSlow; }

 private:
  bool slow_ = true;
};

// Why images of a session are not made by the backend that comes first for them: each reason is told once, in the log.
// Thread-bound(control).
class LeftImages {
 public:
  // "session 3: images go to cpu, for cuda:0: the GPU decodes JPEG files alone". `why`: fit for people.
  void tell(SessionId session, std::string_view to, std::string_view why) {
    if (told_.size() == kMostReasons || std::find(told_.begin(), told_.end(), why) != told_.end()) return;
    told_.emplace_back(why);
    log_info("session " + std::to_string(raw(session)) + ": images go to " + std::string(to) + ", for " +
             std::string(why));
  }

 private:
  static constexpr std::size_t kMostReasons = 16;  // of a session
  std::vector<std::string> told_;
};

// `slots` and `sink` outlive the session in the pipeline.
struct SessionParts {
  SlotPool* slots = nullptr;
  std::shared_ptr<Arena> arena;  // shared with batches under way: as many slots
  BatchSink* sink = nullptr;
  std::shared_ptr<const Caller> caller;  // shared with the fetch tasks
  std::shared_ptr<Account> account;      // shared: see Ledger::account()
  CacheUse cache = CacheUse::kTensors;   // the most that is kept of its images, and used
  bool cache_at_once = false;            // at the first access
  std::shared_ptr<SessionCosts> costs = std::make_shared<SessionCosts>();  // shared with the session, which tells of it
  std::shared_ptr<SessionStates> states = std::make_shared<SessionStates>();  // shared likewise
  std::shared_ptr<SessionSigns> signs = std::make_shared<SessionSigns>();     // shared likewise
  std::shared_ptr<LeftImages> left = std::make_shared<LeftImages>();          // shared by its batches alone
};

// Shared by the session and its batches, which end after it when a lane still writes.
struct OpenSession {
  SessionId id{};
  SessionParts parts;
  LabelValue user{};  // whose batches are completed
  ReadingPace pace;
  bool open = true;  // false: nothing reaches its sink or its slots any more

  Owner owner() const { return {parts.caller->user(), id}; }

  void close() {
    open = false;
    parts.slots = nullptr;
    parts.sink = nullptr;
    parts.arena.reset();
  }
};

}  // namespace millrace
