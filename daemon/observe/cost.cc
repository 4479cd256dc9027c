#include "daemon/observe/cost.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

// More of what took longer is not set off: else a busy hour would hide for hours what is saved after it.
constexpr std::chrono::nanoseconds kMostOffset = std::chrono::seconds(5);

}  // namespace

Cost& Cost::operator+=(const Cost& more) {
  lane_cpu += more.lane_cpu;
  fetch_cpu += more.fetch_cpu;
  control_cpu += more.control_cpu;
  process_cpu += more.process_cpu;
  from_files += more.from_files;
  from_kept += more.from_kept;
  images += more.images;
  tensors += more.tensors;
  memory_seconds += more.memory_seconds;
  saved_lanes += more.saved_lanes;
  waited += more.waited;
  return *this;
}

Cost CostAccount::at(Clock::time_point now) const {
  Cost cost = sum_;
  cost.memory_seconds += static_cast<double>(held_.count) * seconds_since(now);
  return cost;
}

void CostAccount::hold(Bytes more, Clock::time_point now) {
  sum_ = at(now);
  since_ = now;
  held_ += more;
}

void CostAccount::let_go(Bytes less, Clock::time_point now) {
  sum_ = at(now);
  since_ = now;
  held_ = held_ - less;
}

void SessionCosts::add(const Cost& more) {
  costs_.add(more);
  if (job_) job_->costs.add(more);
}

void SessionCosts::saved(std::chrono::nanoseconds time) {
  saved_untold_ = std::max(saved_untold_ + time, -kMostOffset);
  if (saved_untold_.count() <= 0) return;
  Cost more;
  more.saved_lanes = std::exchange(saved_untold_, {});
  add(more);
}

void SessionCosts::hold(Bytes more, Clock::time_point now) {
  costs_.hold(more, now);
  if (job_) job_->costs.hold(more, now);
}

void SessionCosts::let_go(Bytes less, Clock::time_point now) {
  costs_.let_go(less, now);
  if (job_) job_->costs.let_go(less, now);
}

}  // namespace millrace
