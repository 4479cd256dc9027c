// How much memory a lane takes for one picture while it decodes, orients and resamples it: from header and boxes,
// before any is taken. Thread-safe: pure functions.
#pragma once

#include "daemon/model/encoded_image.h"
#include "daemon/model/geometry.h"

namespace millrace {

// What a lane keeps from picture to picture anyway: its two buffers of pixels. Pictures that take no more than this are
// nobody's concern; others are charged to memory.decoding.
inline constexpr Bytes kLaneKeeps = 32_MiB;

// `needed`: decoding takes so much. `at_most`: never more; what lies between depends on what the file says further on.
struct DecodingMemory {
  Bytes needed;
  Bytes at_most;
};

// The codec's own, the rows that the crop lies in, the crop once more where it has to be turned, and at the most the
// rows that resampling holds.
DecodingMemory decoding_memory(const SourceInfo& info, const SampleGeometry& geometry);

}  // namespace millrace
