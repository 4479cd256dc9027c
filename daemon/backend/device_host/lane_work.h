// A job as a lane works it off, batch after batch: which samples have their outcomes, and when to stop.
// Thread-bound(the lane's thread).
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "daemon/backend/backend.h"
#include "daemon/backend/words.h"
#include "daemon/model/limits.h"

namespace millrace::device_host {

class LaneWork {
 public:
  using Indices = std::span<const std::size_t>;

  // Borrows all of them. `stopped`: asked before each batch.
  LaneWork(const DecodeJob& job, const SampleLimits& limits, const std::function<bool()>& stopped);

  const DecodeJob& job() const { return job_; }
  const SampleTask& task(std::size_t i) const { return job_.tasks[i]; }
  const SampleLimits& limits() const { return limits_; }
  bool stopped() const { return stopped_(); }

  bool is_finished(std::size_t i) const { return finished_[i]; }
  void finish(std::size_t i, std::optional<Error> error);
  void finish_all(Indices tasks, const Error& error);
  // They come again (SampleOutcome::not_begun).
  void put_back(Indices tasks);
  // To be said beside the outcome's error.
  SampleOutcome& outcome(std::size_t i) { return outcomes_[i]; }
  // The time that a batch took, which its samples share. What was made and took longer than the limit is finished so.
  void note_time(Indices tasks, std::chrono::nanoseconds all);

  // Where the next batch begins, once `made` are finished or under way: the first sample that is neither.
  std::size_t next_after(std::size_t next, Indices made) const;

  // Until every sample is finished, the job has had its turn, or it is stopped: `make_next` makes a batch of the samples
  // from `next` on, finishes them, and moves `next`. An outcome for each task, in order.
  std::vector<SampleOutcome> work_off(const std::function<void(std::size_t& next)>& make_next);

 private:
  void give_back(bool had_its_turn);

  const DecodeJob& job_;
  const SampleLimits& limits_;
  const std::function<bool()>& stopped_;
  std::vector<SampleOutcome> outcomes_;
  std::vector<bool> finished_;
};

}  // namespace millrace::device_host
