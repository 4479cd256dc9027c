// How long a sample will keep a lane, as far as its header and its boxes tell before it is decoded. Good enough to
// order by; nothing else may depend on it.
//
//     JPEG   50 us + 3 ns a byte of the file above the crop's end + 1.5 ns a pixel of the crop
//     PNG    190 us + 38 ns a pixel of the picture, for all its rows are decoded
//     WebP   15 us + 42 ns a byte and 4 ns a pixel of the picture, for all its rows are decoded, too
//
// PNG and WebP: least squares of relative errors over the thread's processor time, 2026-11-22, RandomResizedCrop to
// 224x224 uint8, twice each of 48 photographs: PNG on one core of an Intel Xeon (Sapphire Rapids; rank correlation
// 0.94, median relative error 0.09), WebP on one of an AMD EPYC, at qualities of 60, 80 and 90 and half to 1.2 times
// their size (0.99, 0.03).
//
// JPEG: by its order alone, for the same work, four times each of 167 photographs, two runs. Whether a seek index
// covers the image is not asked. With one, 5 ns a byte of the crop's own rows and columns tell more; batches would gain
// 0.7 %. Rank correlation with the time, and, simulated, what batches of 32 take on eight lanes:
//
//                                       first touch    by an index    one half each    batches by an index
//     5.5 ns (least squares, first)     0.93 - 0.94    0.85 - 0.86    0.82 - 0.83      1.051 - 1.058
//     3 ns                              0.92 - 0.93    0.89 - 0.90    0.84             1.050 - 1.051
//     knowing of indexes                0.93 - 0.94    0.96           0.95             1.043 - 1.044
//     knowing the time itself           1              1              1                1.044
//
// Two lanes, batches drawn from those times, from the first sample to the last one's end against lanes that never wait
// (simulated, 5 us a hand-over to a lane):
//
//     batch                                                       8     32     64    256
//     in the order of the request, an eighth of the batch at once 1.095  1.070  1.057  1.028
//     the costliest first, a sixth of what is left at once        1.032  1.008  1.006  1.001
//
// With eight lanes, batches of 32 and 256: 1.259 and 1.133, against 1.056 and 1.012.
#pragma once

#include <cstdint>

#include "daemon/model/encoded_image.h"
#include "daemon/model/geometry.h"

namespace millrace {

// Nanoseconds of the lane named above. Thread-safe.
std::uint64_t expected_cost(const EncodedImage& image, const SampleGeometry& geometry);

}  // namespace millrace
