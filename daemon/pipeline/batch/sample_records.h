// What goes out with a slot when it is sealed: a record of every sample of its tensor, and the tensor's description.
// Thread-bound(control).
#pragma once

#include <span>
#include <string>

#include "daemon/model/batch_result.h"
#include "daemon/pipeline/batch/batch.h"

namespace millrace {

// Writes one record for every position of the tensor behind it, into the slot. `backends`: their names, by number.
// REQUIRES: the batch has its final bytes.
void write_records(const Batch& batch, std::span<const std::string> backends);

// The handle, but for the sealing time. REQUIRES: as above, and a sample is left.
SealedTensor describe_tensor(const Batch& batch);

}  // namespace millrace
