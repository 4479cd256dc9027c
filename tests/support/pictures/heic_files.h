// HEIC files that pillow-heif 1.8 wrote, and the pixels that it makes of them: there is no encoder here.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/support/pictures/test_images.h"

namespace millrace {

// "colour" (40 x 30) and "grey" (39 x 30, cut out of 40), both 4:2:0; "alpha" and "deep" (10 bits), of 24 pixels a
// side; "grid" (130 x 70, in parts of 64).
std::vector<std::byte> heic_file(const std::string& name);
Pixels heic_pixels(const std::string& name);

}  // namespace millrace
