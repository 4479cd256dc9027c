#include "daemon/backend/device_host/lane_work.h"

#include <algorithm>

namespace millrace::device_host {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

LaneWork::LaneWork(const DecodeJob& job, const SampleLimits& limits, const std::function<bool()>& stopped)
    : job_(job), limits_(limits), stopped_(stopped), outcomes_(job.tasks.size()), finished_(job.tasks.size()) {
  for (std::size_t i = 0; i < job.tasks.size(); ++i) outcomes_[i].index = job.tasks[i].index;
}

void LaneWork::finish(std::size_t i, std::optional<Error> error) {
  outcomes_[i].error = std::move(error);
  finished_[i] = true;
}

void LaneWork::finish_all(Indices tasks, const Error& error) {
  for (const std::size_t i : tasks) finish(i, error);
}

void LaneWork::put_back(Indices tasks) {
  for (const std::size_t i : tasks) {
    outcomes_[i].not_begun = true;
    finished_[i] = true;
  }
}

void LaneWork::note_time(Indices tasks, std::chrono::nanoseconds all) {
  const auto each = all / tasks.size();
  for (const std::size_t i : tasks) {
    outcomes_[i].decode = each;
    if (each > limits_.time && !outcomes_[i].error)
      finish(i, Error{Code::kDeadline, "took longer than limits.time_milliseconds"});
  }
}

std::size_t LaneWork::next_after(std::size_t next, Indices made) const {
  while (next < job_.tasks.size() && (finished_[next] || std::find(made.begin(), made.end(), next) != made.end()))
    ++next;
  return next;
}

std::vector<SampleOutcome> LaneWork::work_off(const std::function<void(std::size_t& next)>& make_next) {
  const Clock::time_point begun = Clock::now();
  bool has_begun = false;
  for (std::size_t next = 0; next < job_.tasks.size();) {
    const bool is_over = std::exchange(has_begun, true) && Clock::now() - begun >= job_.turn;
    if (is_over || stopped()) {
      give_back(is_over);
      break;
    }
    make_next(next);
  }
  return std::move(outcomes_);
}

// What has not begun.
void LaneWork::give_back(bool had_its_turn) {
  for (std::size_t i = 0; i < job_.tasks.size(); ++i) {
    if (finished_[i]) continue;
    if (had_its_turn)
      outcomes_[i].not_begun = true;
    else
      finish(i, cancelled_error());
  }
}

}  // namespace millrace::device_host
