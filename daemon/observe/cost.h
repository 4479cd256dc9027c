// What work took, for whom: of a session, and of the job that it belongs to (job_costs.h). daemon/doc/costs.md says
// where each figure is read.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "daemon/observe/stage_times.h"
#include "proto/base/bytes.h"

namespace millrace {

// CPU times are the kernel's, of threads and processes. Value.
struct Cost {
  std::chrono::nanoseconds lane_cpu{0}, fetch_cpu{0}, control_cpu{0}, process_cpu{0};
  Bytes from_files, from_kept;  // read
  std::uint64_t images = 0;     // made
  Bytes tensors;                // handed over
  double memory_seconds = 0;    // bytes for tensors, by seconds that they were held
  std::chrono::nanoseconds saved_lanes{0}, waited{0};

  std::chrono::nanoseconds cpu() const { return lane_cpu + fetch_cpu + control_cpu + process_cpu; }
  Cost& operator+=(const Cost& more);
};

// Costs so far, and memory that is held. Thread-bound(control).
class CostAccount {
 public:
  using Clock = std::chrono::steady_clock;

  void add(const Cost& more) { sum_ += more; }
  void hold(Bytes more, Clock::time_point now);
  void let_go(Bytes less, Clock::time_point now);
  Cost at(Clock::time_point now) const;

 private:
  double seconds_since(Clock::time_point now) const { return std::chrono::duration<double>(now - since_).count(); }

  Cost sum_;
  Bytes held_;
  Clock::time_point since_{};  // held_ bytes are held
};

// The sessions of a user that named one job.
struct JobAccount {
  CostAccount costs;
  std::uint64_t sessions = 0;  // opened so far
  std::uint32_t open = 0;      // of these, now
  std::uint64_t used = 0;      // the larger, the later a session was opened or closed
};

// What has been done for a session so far. Outlives it, for batches that are still under way, whose costs come later.
// Thread-bound(control).
class SessionCosts : public std::enable_shared_from_this<SessionCosts> {
 public:
  using Clock = CostAccount::Clock;

  // `job`: what is added here is added there. nullptr: there is none, in tests.
  explicit SessionCosts(std::shared_ptr<JobAccount> job = nullptr) : job_(std::move(job)) {}

  void add(const Cost& more);
  // What images made of something kept took less than first accesses; below 0: what they took more. It is set off, and
  // what is told never falls.
  void saved(std::chrono::nanoseconds time);
  void hold(Bytes more, Clock::time_point now);
  void let_go(Bytes less, Clock::time_point now);
  void made(std::chrono::nanoseconds on_lanes, const StageTimes& stages) {
    lanes_ += on_lanes;
    making_ += stages;
  }
  void read(Bytes encoded) { encoded_ += encoded; }

  Cost at(Clock::time_point now) const { return costs_.at(now); }
  std::chrono::nanoseconds lanes() const { return lanes_; }  // of CPU lanes, by the clock on the wall
  const StageTimes& making() const { return making_; }       // of these, by stage
  Bytes encoded() const { return encoded_; }                 // read, wherever they came from

  // The control thread's, by the clock on the wall, until ControlTime settles it.
  std::chrono::nanoseconds control_unsettled{0};

 private:
  const std::shared_ptr<JobAccount> job_;  // shared with the table of jobs
  CostAccount costs_;
  std::chrono::nanoseconds lanes_{0}, saved_untold_{0};
  StageTimes making_;
  Bytes encoded_;
};

}  // namespace millrace
