// How long a sample will keep a lane, as far as its header and its boxes tell before it is decoded. Good enough to
// order by; nothing else may depend on it.
//
//     JPEG   50 us + 3 ns a byte of the file above the crop's end + 1.5 ns a pixel of the crop
//     PNG    190 us + 38 ns a pixel of the picture, for all its rows are decoded
//     WebP   15 us + 42 ns a byte and 4 ns a pixel of the picture, for all its rows are decoded, too
//
// PNG and WebP: fitted to a thread's processor time for RandomResizedCrop to 224x224 of photographs. JPEG: chosen for
// the order that it gives, at first touch and by a seek index alike; whether an index covers the image is not asked.
#pragma once

#include <cstdint>

#include "daemon/model/encoded_image.h"
#include "daemon/model/geometry.h"

namespace millrace {

// Nanoseconds of a lane, some processor's. Thread-safe.
std::uint64_t expected_cost(const EncodedImage& image, const SampleGeometry& geometry);

}  // namespace millrace
