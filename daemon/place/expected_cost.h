// How long a sample will keep a lane, as far as its header and its boxes tell before it is decoded. Good enough to
// order by, and to share lanes by; nothing else may depend on it.
//
// What a byte and a pixel cost is the format's: DecodingCost in formats/format.h; what is made of them costs by its own
// pixels, steps of augmentation included. What was kept of an image counts as what it is: a packed form as a packed file, a tensor as a copy.
#pragma once

#include <cstdint>

#include "daemon/model/bytes/encoded_image.h"
#include "daemon/model/geometry.h"

namespace millrace {

// Nanoseconds of a lane, some processor's. Thread-safe.
std::uint64_t expected_cost(const EncodedImage& image, const SampleGeometry& geometry);

}  // namespace millrace
