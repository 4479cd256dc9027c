// Pictures to time decoders by, made up at start so that no file is needed: shapes, shades and grain that compress like
// a photograph. Immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/encoded_image.h"

namespace millrace {

struct CalibrationPicture {
  std::vector<std::byte> jpeg;
  SourceInfo info;
};

// One JPEG file of that size in 4:4:4 and one in 4:2:0, baseline, about 4 bits a pixel, the same ones on every host
// that has the same libjpeg-turbo. Empty when there is no memory for them.
std::vector<CalibrationPicture> calibration_pictures(Size size);

}  // namespace millrace
