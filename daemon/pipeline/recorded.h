// What a recording learns of sessions and their batches (observe/trace/points.h). Each does nothing while nobody records.
// Thread-bound(control).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "daemon/observe/session_states.h"
#include "daemon/observe/trace/points.h"
#include "daemon/pipeline/batch/batch.h"

namespace millrace {

trace::Subject subject_of(const Owner& owner);

void record_state(const OpenSession& session, SessionState state, SessionStates::Clock::time_point since);
// `active`: batches that have slots.
void record_slots(const OpenSession& session, std::span<const BatchPtr> active);
void record_stage(const Batch& batch);
enum class BatchEnd : bool { kHandedOver, kFailed };
void record_end(const Batch& batch, BatchEnd end);
void record_portions(std::size_t at_fetch_threads);
void record_jobs(std::string_view backend, std::size_t jobs);  // `backend`: lasts as long as the pipeline

}  // namespace millrace
