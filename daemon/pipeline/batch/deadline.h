// Whether a batch can still be had in time, and what its client is told when it cannot. Plain functions of a batch.
#pragma once

#include <chrono>
#include <string>

#include "daemon/pipeline/batch/batch.h"

namespace millrace {

// Its deadline has passed, or will have when `least` more has been spent on it.
inline bool is_late(const Batch& batch, std::chrono::nanoseconds least = {}) {
  const auto& deadline = batch.request().deadline;
  return deadline && std::chrono::steady_clock::now() + least >= *deadline;
}

// No lane has had any of it: what is given up costs nobody anything.
inline bool is_unbegun(const Batch& batch) {
  return batch.count(SampleState::kMaking) == 0 && batch.count(SampleState::kMade) == 0;
}

inline Error deadline_passed(const Batch& batch) {
  return {Code::kDeadline, "the deadline passed with " + std::to_string(batch.finished()) + " of " +
                               std::to_string(batch.count()) + " images made"};
}

inline Error deadline_out_of_reach(std::chrono::nanoseconds least) {
  return {
      Code::kDeadline,
      "the deadline cannot be met any more, so none of its images was begun: with all lanes for it they would take " +
          std::to_string(std::chrono::ceil<std::chrono::milliseconds>(least).count()) +
          " ms at least; submit smaller batches or earlier, or give it longer"};
}

}  // namespace millrace
