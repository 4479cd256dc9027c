// What becomes of a batch whose samples have all come back: the session's policy for bad ones, as repairs
// of the slot; then the records and the description of the tensor. Pure but for the slot's records.
// Thread-bound(control).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "daemon/memory/arena.h"
#include "daemon/model/batch_result.h"
#include "daemon/pipeline/batch_run.h"
#include "proto/base/result.h"

namespace millrace {

// Sets batch.order and batch.tensor, moves or shares pixels where the policy needs it: the repairs that the arena has
// still to carry out. An error fails the batch (on_error fail, nothing to substitute, or
// nothing good under the guard).
Result<std::vector<Repair>> mend(BatchRun& batch);

// Writes one record a sample of batch.order behind the tensor. `backends`: their names, by position.
void write_records(const BatchRun& batch, std::span<const std::string> backends);

// The handle, but for the sealing time. REQUIRES: batch.order is not empty.
SealedTensor describe_tensor(const BatchRun& batch);

}  // namespace millrace
