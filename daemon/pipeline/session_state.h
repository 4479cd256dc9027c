// In which state a session is (observe/session_states.h): that of its oldest batch with a slot that has not ended, else
// what it waits for to begin one. Pure functions, in constant time but for failed batches and the session's epochs.
//
// A batch is several things at once: some of its images are read while others are made. Then its state is the furthest
// of these, because nothing waits for a disk while lanes are at work. So a batch that waits for something has nothing else under
// way.
#pragma once

#include <span>

#include "daemon/observe/session_states.h"
#include "daemon/pipeline/batch/batch.h"
#include "daemon/pipeline/open_session.h"
#include "daemon/pipeline/waiting.h"

namespace millrace {

// REQUIRES: it runs, or is finalized.
SessionState state_of(const Batch& batch);

// `active`: its batches with a slot, the oldest first. `lists`: some dataset of it is being listed. REQUIRES: it is open.
SessionState state_of(const OpenSession& session, const Waiting& waiting, std::span<const BatchPtr> active, bool lists);

}  // namespace millrace
