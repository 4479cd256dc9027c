// Mending of slot memory as backends on the host do it. Pure functions.
#pragma once

#include <cstring>

#include "daemon/backend/backend.h"

namespace millrace {

inline void repair(const RepairStep& step) {
  if (step.from.empty())
    std::memset(step.to.data(), 0, step.to.size());
  else
    std::memmove(step.to.data(), step.from.data(), step.to.size());
}

// All steps in order, then done.
inline void run_repair(RepairJob& job) {
  for (const RepairStep& step : job.steps) repair(step);
  job.done();
}

}  // namespace millrace
