// What a client is told of a batch, or of a sample, that cannot be read. Pure functions, thread-safe.
#pragma once

#include <cstdint>

#include "daemon/pipeline/batch/batch.h"
#include "daemon/pipeline/batch/tensor_layout.h"
#include "proto/base/error.h"

namespace millrace {

Error host_lacks_for_long(const Error& lacking);  // no sample is bad
Error root_missing(const Error& missing);         // likewise: the epoch breaks off

// Of a packed batch's images together the slot has no room for this one. `needed`: slot bytes for all.
Error no_room_in_slot(const Batch& batch, std::uint32_t index, Bytes needed);
// Nor may any be left out.
Error slot_too_small(const Batch& batch, const Overflow& over);

}  // namespace millrace
