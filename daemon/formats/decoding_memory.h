// How much memory a lane takes for one picture while it decodes, orients and resamples it: from header and boxes,
// before any is taken. Thread-safe: pure functions.
#pragma once

#include "daemon/model/bytes/encoded_image.h"
#include "daemon/model/geometry.h"

namespace millrace {

// A lane keeps its two buffers of pixels from picture to picture. A picture that needs no more than they hold costs
// nothing; a larger one is charged to memory.decoding.
inline constexpr Bytes kLaneKeeps = 32_MiB;

// `needed`: what decoding takes, as far as the header tells. `at_most`: its upper bound, whatever stands in the parts
// of the file that have not been read.
struct DecodingMemory {
  Bytes needed;
  Bytes at_most;
};

// The sum of the codec's own memory, the rows that the crop lies in, the crop a second time if it has to be rotated or
// mirrored, what steps of augmentation work on, and the most rows that resampling holds at a time.
DecodingMemory decoding_memory(const SourceInfo& info, const SampleGeometry& geometry);

}  // namespace millrace
