// Turns stored pictures by their EXIF orientation (kernels/tensor/orientation.h). Pure functions.
//
// A decoder maps a crop box back to the stored picture, decodes only that, and turns the crop.
#pragma once

#include "kernels/base/image_view.h"
#include "kernels/base/time_limit.h"
#include "kernels/tensor/orientation.h"

namespace millrace::kernels {

// Turns `stored` into `out`. REQUIRES: 1, 3 or 4 channels on both sides; out.size() == oriented(stored.size(),
// orientation); no overlap. false: `limit`, if there is one, was over first, and rows are missing.
bool orient(const U8View& stored, Orientation orientation, const MutableU8View& out, TimeLimit* limit = nullptr);

namespace reference {  // obviously right, slow: pixel by pixel from the definition
void orient(const U8View& stored, Orientation orientation, const MutableU8View& out);
}

}  // namespace millrace::kernels
